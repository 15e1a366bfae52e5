package scale

import "time"

// journal is sidecar/spool: one goroutine writes what waits and syncs it, and then tells all who wait; consumers
// follow.
type journal struct {
	n       *node
	waiting fifo[entry]
	writing bool

	records   []*ret
	consumers []*consumer
	Groups    int // fsyncs
}

// entry is a record on its way to the disk.
type entry struct {
	r    *ret
	size int
	cost time.Duration // of telling whoever waits
	done func()
}

// consumer follows a journal.
type consumer struct {
	j    *journal
	at   int
	busy bool
	// take consumes a batch and calls back.
	take func(batch []*ret, then func())
}

func (n *node) newJournal() *journal { return &journal{n: n} }

func (j *journal) follow(take func(batch []*ret, then func())) {
	j.consumers = append(j.consumers, &consumer{j: j, take: take})
}

func (j *journal) append(e entry) {
	j.waiting.push(e)
	if !j.writing {
		j.writing = true
		j.n.daemon.Next(0, j.commit)
	}
}

// commit is one group: everything that waits now.
func (j *journal) commit() {
	var group []entry
	size := 0
	for j.waiting.len() > 0 && (size == 0 || size < groupBytes) {
		e := j.waiting.pop()
		size += e.size
		group = append(group, e)
	}
	w := j.n.w
	j.n.daemon.Do(time.Duration(len(group))*w.withBytes(w.Append), func() {
		j.n.disk.Serve(w.Fsync+scaled(w.DiskMiB, size), func() {
			j.Groups++
			for _, e := range group {
				j.records = append(j.records, e.r)
			}
			for _, c := range j.consumers {
				c.wake()
			}
			j.n.daemon.Each(len(group), func(i int) time.Duration { return group[i].cost }, func(i int) { group[i].done() },
				func() {
					if j.waiting.len() > 0 {
						j.commit()
						return
					}
					j.writing = false
				})
		})
	})
}

// scaled is what bytes take at so much per MiB.
func scaled(perMiB time.Duration, bytes int) time.Duration {
	return time.Duration(float64(perMiB) * float64(bytes) / (1 << 20))
}

func (c *consumer) wake() {
	if c.busy || c.at == len(c.j.records) {
		return
	}
	c.busy = true
	batch := c.j.records[c.at:min(len(c.j.records), c.at+batchRecords)]
	c.take(batch, func() {
		c.at += len(batch)
		c.busy = false
		c.wake()
	})
}
