package scale

import (
	"slices"
	"time"
)

// Keys is how long key changes take from the edit on one node until they are in the directories of all.
type Keys struct {
	All []time.Duration // sorted; of each edit
}

// Quantile of the edits.
func (k Keys) Quantile(q float64) time.Duration {
	return k.All[min(len(k.All)-1, int(q*float64(len(k.All))))]
}

// editing is edits one after the other, each of some keys at once, on each node in turn.
type editing struct {
	w       *World
	r       *raft
	writers []*keyWriter
	left    int // edits
	atOnce  int
	total   int // changes so far
	began   time.Duration
	out     Keys
}

// keyWriter is the loop of fsync/keydir on a node: one round at a time. Changes have numbers.
type keyWriter struct {
	e             *editing
	n             *node
	known, onDisk int
	busy          bool
}

// Keys accepts keys as salt-key does, so many at once, and waits until all nodes have them; that so many times.
func (w *World) Keys(edits, atOnce int) Keys {
	e := &editing{w: w, r: w.newRaft(min(atOnce, keyCommands) * keyBytes), left: edits, atOnce: atOnce}
	for _, n := range w.nodes {
		e.writers = append(e.writers, &keyWriter{e: e, n: n})
	}
	e.r.applied = func(n *node, says int) { e.writers[n.id].learn(says) }
	e.edit()
	w.Sim.Run(time.Hour)
	slices.Sort(e.out.All)
	return e.out
}

// edit renames files on one node, which looks twice before it believes it.
func (e *editing) edit() {
	if e.left == 0 {
		return
	}
	e.left--
	e.began = e.w.Sim.Now()
	editor := e.writers[e.left%e.w.Nodes]
	e.total += e.atOnce
	editor.onDisk = e.total
	e.w.Sim.After(keyDebounce+keySettle, func() { e.propose(editor.n, e.total-e.atOnce) })
}

// propose has the changes after a number decided, request by request.
func (e *editing) propose(editor *node, after int) {
	if after == e.total {
		return
	}
	upTo := min(e.total, after+keyCommands)
	e.r.propose(editor, upTo, func() { e.propose(editor, upTo) })
}

// editPause is at most the time between two edits.
const editPause = 100 * time.Millisecond

// wrote looks whether all nodes have all.
func (e *editing) wrote() {
	for _, k := range e.writers {
		if k.onDisk < e.total {
			return
		}
	}
	if len(e.out.All)*e.atOnce < e.total {
		e.out.All = append(e.out.All, e.w.Sim.Now()-e.began)
		e.w.Sim.After(e.w.Sim.Between(0, editPause), e.edit)
	}
}

// learn has the next round write what is new.
func (k *keyWriter) learn(known int) {
	k.known = max(k.known, known)
	if k.busy || k.known <= k.onDisk {
		return
	}
	k.busy = true
	w, n, upTo := k.e.w, k.known-k.onDisk, k.known
	k.n.daemon.Do(time.Duration(n)*w.KeyFile, func() {
		took := time.Duration(n)*w.Fsync + 2*w.Fsync // the files, and both directories
		if n > syncEach {
			took = 3*w.Fsync + time.Duration(n)*w.SyncFile
		}
		k.n.disk.Serve(took, func() {
			k.onDisk, k.busy = max(k.onDisk, upTo), false
			k.e.wrote()
			k.learn(0)
		})
	})
}
