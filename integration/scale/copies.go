package scale

import "time"

// copyLine is the way of a job to one replica: records wait a moment for others, then go batch by batch, each
// answered when it is on the other's disk. The program's queue is bounded, and what does not fit is found by
// comparing the job.
type copyLine struct {
	from, to *node
	job      *running
	waiting  int
	busy     bool
}

// copies is a batch at its receiver.
type copies struct {
	line *copyLine
	n    int
	done func()
}

func (l *copyLine) add() {
	l.waiting++
	if !l.busy {
		l.busy = true
		l.from.w.Sim.After(linger, l.turn)
	}
}

// turn sends a batch.
func (l *copyLine) turn() {
	w := l.from.w
	n := min(l.waiting, copyRecords, 1+(copyBytes-1)/(copyWeight+w.Payload))
	l.waiting -= n
	if l.busy = n > 0; !l.busy {
		return
	}
	l.from.daemon.Do(time.Duration(n)*w.withBytes(w.CopyOut), func() {
		l.from.peer(l.to, w.RelayBytes+n*(w.CopyBytes+w.Payload), func() {
			l.to.accept(&copies{l, n, func() { l.to.peer(l.from, w.RelayBytes, l.turn) }})
		})
	})
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
		if j.copies[n.id]++; j.copies[n.id] == w.Minions {
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
