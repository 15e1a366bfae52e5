package scale

import "time"

// As fsync/jobs and fsync/feed have them.
const (
	linger      = 100 * time.Millisecond
	copyRecords = 2048
	copyBytes   = 1 << 20
	copyWeight  = 200 // of a record, beside its return
	copyQueue   = 32 << 20
)

// copyLine is the way of a job to one replica: records wait a moment for others, then go batch by batch, each answered when it is on the
// other's disk. What does not fit the queue is found by comparing the job.
type copyLine struct {
	from, to *node
	job      *running
	waiting  int
	dirty    int
	busy     bool
}

// copies is a batch at its receiver.
type copies struct {
	line *copyLine
	n    int
	done func()
}

func (l *copyLine) weight() int { return copyWeight + l.from.w.Payload }

func (l *copyLine) add() {
	if (l.waiting+1)*l.weight() > copyQueue {
		l.dirty++
	} else {
		l.waiting++
	}
	if !l.busy {
		l.busy = true
		l.from.w.Sim.After(linger, l.turn)
	}
}

// turn sends a batch.
func (l *copyLine) turn() {
	w := l.from.w
	n := min(l.waiting, copyRecords, 1+(copyBytes-1)/l.weight())
	if n == 0 {
		l.compare()
		return
	}
	l.waiting -= n
	l.send(n, w.CopyOut, l.turn)
}

func (l *copyLine) send(n int, cost time.Duration, then func()) {
	w := l.from.w
	l.from.daemon.Do(time.Duration(n)*w.withBytes(cost), func() {
		l.from.peer(l.to, copied, w.RelayBytes+n*(w.CopyBytes+w.Payload), func() {
			l.to.accept(&copies{l, n, func() { l.to.peer(l.from, copied, w.RelayBytes, then) }})
		})
	})
}

// compare tells the other what there is of the job, and sends what it lacks.
func (l *copyLine) compare() {
	if l.dirty == 0 {
		l.busy = false
		return
	}
	w, have, lack := l.from.w, l.job.cached, l.dirty
	l.dirty = 0
	l.from.daemon.Do(time.Duration(have)*w.CopyLook, func() {
		l.from.peer(l.to, copied, w.RelayBytes+have*40, func() {
			l.to.daemon.Do(time.Duration(have-lack)*w.CopyLook, func() {
				l.to.peer(l.from, copied, w.RelayBytes+lack*2, func() { l.rest(lack) })
			})
		})
	})
}

// rest sends what is read from the disk again.
func (l *copyLine) rest(lack int) {
	n := min(lack, copyRecords, 1+(copyBytes-1)/l.weight())
	if n == 0 {
		l.turn()
		return
	}
	l.send(n, l.from.w.CopyOut+l.from.w.CopyLook, func() { l.rest(lack - n) })
}

// accept writes batches, one at a time, and syncs the file system.
func (n *node) accept(c *copies) {
	n.writing.push(c)
	if !n.busy {
		n.busy = true
		n.write()
	}
}

func (n *node) write() {
	if n.writing.len() == 0 {
		n.busy = false
		return
	}
	w, c := n.w, n.writing.pop()
	j := c.line.job
	n.daemon.Series(c.n, w.withBytes(w.CopyIn), func(int) {
		n.disk.returns++
		if j.copies[n.id]++; j.copies[n.id] == w.Answering {
			j.out.Copied[n.id] = j.now()
		}
	}, func() {
		n.syncReturns(func() {
			n.daemon.Do(0, func() {
				c.done()
				n.write()
			})
		})
	})
}
