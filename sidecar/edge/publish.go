package edge

// toBroadcast are the topics of a Publication that names none.
var toBroadcast = []string{broadcast}

// Publish delivers p to every subscriber it is for, after everything
// published before. It never waits for a subscriber; when called faster than
// the edge's own workers can walk, it waits for them. Before Open and after
// Close it does nothing, because it has no subscribers then.
func (e *PubEdge) Publish(p Publication) {
	e.mu.Lock()
	for e.opened && !e.closed && (e.frozen || e.congested()) {
		e.waiting++
		e.cond.Wait()
		e.waiting--
	}
	if !e.opened || e.closed {
		e.mu.Unlock()
		return
	}
	e.append(p)
	e.mu.Unlock()
	e.metrics.published.Inc()
	for _, h := range e.shards {
		h.notifyWorker()
	}
}

// append puts p into the feeds and the list of records. Wants mu.
func (e *PubEdge) append(p Publication) {
	prev := p.Prev
	if prev == nil {
		prev = p.Body
	}
	e.seq++
	e.pos += int64(len(p.Body))
	r := &record{seq: e.seq, topics: p.Topics, gen: e.cur.number}
	if len(r.topics) == 0 {
		r.topics = toBroadcast
	}
	r.cur = e.cur.put(p.Body, &p)
	if e.prev != nil {
		r.prev = e.prev.put(prev, &p)
	}
	e.lastRecord.next.Store(r)
	e.lastRecord = r
}

// congested tells whether a worker is so far behind that subscribers would
// seem slow who are not. Wants mu.
func (e *PubEdge) congested() bool {
	for _, h := range e.shards {
		if e.seq-h.doneSeq.Load() > uint64(e.cfg.QueueMessages/2) || e.pos-h.donePos.Load() > e.cfg.QueueBytes/2 {
			return true
		}
	}
	return false
}

// progress is what has been published so far.
func (e *PubEdge) progress() (seq uint64, pos int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seq, e.pos
}

// walked lets Publish calls look again.
func (e *PubEdge) walked() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting > 0 {
		e.cond.Broadcast()
	}
}

// current is the generation new subscribers start on, and the last publication
// they have missed.
func (e *PubEdge) current() (*generation, uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cur, e.seq
}
