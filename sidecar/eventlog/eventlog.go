// Package eventlog remembers the newest events of minions that this node's salt-master got: who sent them, through whom
// they came, and whether saltclusterd put them on the master's bus or the master's own Python did.
//
// In: one note for each event, when its minion is answered. Out: the newest ones, newest first. It is there for an
// operator's question "who has handled that?", and nothing else relies on it: it is in memory, holds Size events, and
// begins anew with the process.
//
// Promises: a note allocates nothing and copies what it keeps, so that no request is held in memory by it; ids and tags
// are cut to MaxID and MaxTag bytes.
package eventlog

import (
	"sync"
	"time"
)

// Bounds of what is remembered.
const (
	Size   = 2048 // events
	MaxID  = 64   // bytes of an id
	MaxTag = 192  // bytes of a tag
)

// Event is one that this node's salt-master got.
type Event struct {
	At     time.Time
	Minion string
	Tag    string
	From   string // the node that the minion sent it to; empty: this one
	Python bool   // the master's own code fired it
}

// text is one of a bounded length.
type text[A any] struct {
	bytes A
	n     int
}

type entry struct {
	at     int64 // unix nanoseconds
	minion text[[MaxID]byte]
	from   text[[MaxID]byte]
	tag    text[[MaxTag]byte]
	python bool
}

// Log is safe for concurrent use. A nil one remembers nothing.
type Log struct {
	mu   sync.Mutex
	all  []entry
	next int // where the next one goes
}

// New returns an empty one.
func New() *Log { return &Log{} }

// Note remembers an event.
func (l *Log) Note(e Event) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) < Size {
		l.all = append(l.all, entry{})
		l.next = len(l.all) - 1
	}
	x := &l.all[l.next]
	x.at, x.python = e.At.UnixNano(), e.Python
	x.minion.n = copy(x.minion.bytes[:], e.Minion)
	x.from.n = copy(x.from.bytes[:], e.From)
	x.tag.n = copy(x.tag.bytes[:], e.Tag)
	l.next = (l.next + 1) % Size
}

// Newest returns at most n events of a minion, or with an empty id of all, newest first.
func (l *Log) Newest(minion string, n int) []Event {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	minion = minion[:min(len(minion), MaxID)]
	var out []Event
	for i := range l.all {
		x := &l.all[(l.next-1-i+2*len(l.all))%len(l.all)]
		if len(out) == n {
			break
		}
		if id := string(x.minion.bytes[:x.minion.n]); minion == "" || id == minion {
			out = append(out, Event{
				At: time.Unix(0, x.at).UTC(), Minion: id, From: string(x.from.bytes[:x.from.n]), Tag: string(x.tag.bytes[:x.tag.n]),
				Python: x.python,
			})
		}
	}
	return out
}
