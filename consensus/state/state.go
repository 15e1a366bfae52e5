package state

import (
	"errors"
	"sync"
	"sync/atomic"
)

// State is the replicated state of one node. One goroutine at a time changes
// it, any number may take Views.
type State struct {
	mu  sync.Mutex // held while changing
	cur atomic.Pointer[data]
}

// New returns an empty, unborn state.
func New() *State {
	s := &State{}
	s.cur.Store(newData())
	return s
}

// View returns the state as it is now.
func (s *State) View() View { return View{s.cur.Load()} }

// Replace makes s hold what o holds, for restoring a snapshot under the hands
// of readers.
func (s *State) Replace(o *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cur.Store(o.cur.Load())
}

// Apply applies the entry at log position index and returns one slice of
// results per request, one result per command. Readers see all of the entry or
// nothing of it.
func (s *State) Apply(index uint64, e Entry) [][]Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(index, e)
}

func (s *State) apply(index uint64, e Entry) [][]Result {
	d := s.cur.Load().clone()
	d.index = index
	out := make([][]Result, len(e.Requests))
	for i, r := range e.Requests {
		out[i] = d.request(r)
	}
	s.cur.Store(d)
	return out
}

// ApplyCommands applies commands as one request without an id, at the next log
// position. It is for tests of packages that read this state.
func (s *State) ApplyCommands(cmds ...Command) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(s.cur.Load().index+1, Entry{Requests: []Request{{Commands: cmds}}})[0]
}

func (d *data) request(r Request) []Result {
	if r.ID == "" {
		return d.commands(r.Commands)
	}
	if old := d.requests.byID.get(r.ID); old != nil {
		return old.Results
	}
	if r.Retry && r.Since < d.requests.floor {
		return same(len(r.Commands), refuse(OutcomeUnknown, 0,
			"the request came again too late to tell whether it was applied before"))
	}
	if len(r.Commands) > MaxCommands || len(r.ID) > MaxID {
		return same(len(r.Commands), refuse(Invalid, 0, "the request is out of bounds"))
	}
	results := d.commands(r.Commands)
	d.requests.add(r.ID, results)
	return results
}

func (d *data) commands(cmds []Command) []Result {
	results := make([]Result, len(cmds))
	for i, c := range cmds {
		results[i] = d.command(c)
	}
	return results
}

func (d *data) command(c Command) Result {
	if c == nil {
		return refuse(Invalid, 0, "no command")
	}
	if err := c.Validate(); err != nil {
		return refuse(Invalid, 0, "%s: %v", c.Type(), err)
	}
	if _, birth := c.(Init); !birth && !d.born() {
		return refuse(NotInitialized, 0, "the cluster was not bootstrapped yet")
	}
	return c.apply(d)
}

func same(n int, r Result) []Result {
	out := make([]Result, n)
	for i := range out {
		out[i] = r
	}
	return out
}

func isUnsupported(err error) bool { return errors.Is(err, ErrUnsupported) }
