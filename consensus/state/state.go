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
	return s.applyEntry(index, e)
}

func (s *State) applyEntry(index uint64, e Entry) [][]Result {
	d := s.cur.Load().clone()
	d.index = index
	out := make([][]Result, len(e.Requests))
	for i, r := range e.Requests {
		out[i] = d.applyRequest(r)
	}
	s.cur.Store(d)
	return out
}

// ApplyCommands applies commands as one request without an id, at the next log
// position. It is for tests of packages that read this state.
func (s *State) ApplyCommands(cmds ...Command) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applyEntry(s.cur.Load().index+1, Entry{Requests: []Request{{Commands: cmds}}})[0]
}

func (d *data) applyRequest(r Request) []Result {
	if r.ID == "" {
		return d.applyCommands(r.Commands)
	}
	if old := d.requests.byID.get(r.ID); old != nil {
		return old.Results
	}
	if r.Retry && r.Since < d.requests.floor {
		return repeatResult(len(r.Commands), refuse(OutcomeUnknown, 0,
			"the request was repeated too late to know whether it was applied before"))
	}
	if len(r.Commands) > MaxCommands || len(r.ID) > MaxID {
		return repeatResult(len(r.Commands), refuse(Invalid, 0, "the request is out of bounds"))
	}
	results := d.applyCommands(r.Commands)
	d.requests.addResults(r.ID, results)
	return results
}

func (d *data) applyCommands(cmds []Command) []Result {
	results := make([]Result, len(cmds))
	for i, c := range cmds {
		results[i] = d.applyCommand(c)
	}
	return results
}

func (d *data) applyCommand(c Command) Result {
	if c == nil {
		return refuse(Invalid, 0, "no command")
	}
	if err := c.Validate(); err != nil {
		return refuse(Invalid, 0, "%s: %v", c.Type(), err)
	}
	if _, birth := c.(Init); !birth && !d.isInitialized() {
		return refuse(NotInitialized, 0, "the cluster was not bootstrapped yet")
	}
	return c.applyTo(d)
}

func repeatResult(n int, r Result) []Result {
	out := make([]Result, n)
	for i := range out {
		out[i] = r
	}
	return out
}

func isUnsupported(err error) bool { return errors.Is(err, ErrUnsupported) }
