package feed

import (
	"sync"

	"saltclusterd/gossip/node"
)

// maxLacking bounds the names remembered for lacking, by line.
const maxLacking = 200_000

// Progress is how far this node has what a member has told of since its line began. A member that keeps nothing of the
// sort (Off, where its word for it is known here) never tells.
type Progress struct {
	ID      node.ID
	Off     bool
	Whole   bool // the member has told of everything it has, once at least
	Told    int  // how much that was; before it is whole, so far
	Lacking int  // of it, what is not here yet
}

// Done says that this node has all that the member had when it told of it.
func (p Progress) Done() bool { return p.Off || p.Whole && p.Lacking == 0 }

// lacking is what a member has told of and is not here yet.
type lacking[K comparable] struct {
	mu      sync.Mutex
	telling int // told since the last Heard
	told    int
	whole   bool
	names   map[K]struct{}
}

// Lacks notes that a member has told of so many things, some of which are not here.
func (l *Line[K]) Lacks(told int, names ...K) {
	o := &l.owed
	o.mu.Lock()
	defer o.mu.Unlock()
	o.telling += told
	for _, name := range names {
		if len(o.names) >= maxLacking {
			return
		}
		if o.names == nil {
			o.names = map[K]struct{}{}
		}
		o.names[name] = struct{}{}
	}
}

// Heard notes that with what it told so far a member has told of everything it has.
func (l *Line[K]) Heard() {
	o := &l.owed
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told, o.telling, o.whole = o.telling, 0, true
}

func (l *Line[K]) noteGot(name K) {
	o := &l.owed
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.names, name)
}

// Progress returns the present state.
func (l *Line[K]) Progress() Progress {
	p := Progress{ID: l.id, Off: l.Off()}
	o := &l.owed
	o.mu.Lock()
	defer o.mu.Unlock()
	p.Whole, p.Told, p.Lacking = o.whole, o.told, len(o.names)
	if !p.Whole {
		p.Told = o.telling
	}
	return p
}
