package jobs

import "saltclusterd/gossip/node"

// handle acts on a message of a peer and returns the answer.
func (s *Store) handle(from node.ID, m message) ([]byte, error) {
	switch m.kind {
	case kindFind:
		return s.local(m.jid)
	case kindList:
		return s.localList(m.count)
	}
	p, known := s.Feed().Alive(from)
	if s.Off() != "" {
		return wish{flags: answerOff}.encode(), nil
	}
	switch m.kind {
	case kindRecords:
		return wish{}.encode(), s.accept(m.records)
	case kindItems:
		w := s.wanted(m.items)
		if len(w.which) == 0 {
			s.Feed().Got(m.items.jid)
		}
		return w.encode(), nil
	}
	w := s.differing(from, m.digest)
	if known {
		p.heard(m.digest, w)
	}
	return w.encode(), nil
}

// heard takes in what a digest told.
func (p *peer) heard(d digest, w wish) {
	lacking := make([]string, 0, len(w.which))
	for _, i := range w.which {
		lacking = append(lacking, d.jobs[i].jid)
	}
	p.Lacks(len(d.jobs), lacking...)
	if len(d.jobs) == 0 { // that was all, or there are none
		p.Heard()
	}
	if d.answer {
		p.Tell(false)
	}
}

// differing says which jobs of a digest are not the same here.
func (s *Store) differing(from node.ID, d digest) wish {
	w := wish{how: []byte{}}
	for i, theirs := range d.jobs {
		ours, ok := s.index.fresh(theirs.jid)
		if ok && ours.sum == theirs.sum {
			continue
		}
		if !ok && s.index.refuses(theirs.jid, theirs.at, true) != "" {
			continue
		}
		if !s.claims.take(theirs.jid, from) {
			w.flags |= answerAgain
			continue
		}
		how := byte(wantItems)
		if !ok {
			how = wantAll
		}
		w.which, w.how = append(w.which, i), append(w.how, how)
	}
	return w
}

// wanted says which of a job's items are lacking here, or worse; and those which are here ahead, that may have been
// taken.
func (s *Store) wanted(l listed) (w wish) {
	look, err := s.disk.look(l.jid)
	missing := err != nil
	if s.index.refuses(l.jid, l.at, missing) != "" {
		return w
	}
	have := make(map[string]item, len(look.items))
	for _, it := range look.items {
		have[it.name] = it
	}
	for i, it := range l.items {
		if ours, ok := have[it.name]; !ok || it.ret && ours.ahead || !it.ret && it.beats(ours) {
			w.which = append(w.which, i)
		}
	}
	return w
}
