package sidecar

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"saltclusterd/gossip/node"
)

// substitute is a Files or a Mines that answers what it is told to.
type substitute struct {
	takes []string // commands
	says  []byte
	err   error
	busy  chan struct{} // it answers when that is closed; nil: at once
	blind bool          // it cannot read a load

	mu    sync.Mutex
	asked []string
}

func (s *substitute) Takes(cmd string) bool { return slices.Contains(s.takes, cmd) }

func (s *substitute) Reads(string, []byte) bool { return !s.blind }

func (s *substitute) Answer(_ context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	s.mu.Lock()
	s.asked = append(s.asked, cmd+" "+minion)
	s.mu.Unlock()
	if s.busy != nil {
		<-s.busy
	}
	if s.err != nil {
		return s.err
	}
	finish(s.says)
	return nil
}

const (
	byMaster = "\x81\xa2ok\xc3"
	bySub    = "" // whatever the substitute says
)

// errOnlyPython is why a substitute leaves a request to the master.
var errOnlyPython = errors.New("only the master can answer")

// withoutMaster is a request that a substitute may answer in the master's place, and how often each of them is asked.
type withoutMaster struct {
	name   string
	err    error // of the substitute
	change func(*world)
	from   node.ID
	cmd    string // empty: the substitute's first
	want   string
	asked  int
	master int
	peers  int
	done   int // how often the master is said to have done something
}

// check makes the request in a world to which use gives the substitute.
func (c withoutMaster) check(t *testing.T, s *substitute, use func(*world)) *world {
	t.Helper()
	w := newWorld(t)
	s.err = c.err
	use(w)
	done := 0
	w.proxy.cfg.Done = func(string, string) func(context.Context) { done++; return nil }
	if c.change != nil {
		c.change(w)
	}
	cmd, want := c.cmd, c.want
	if cmd == "" {
		cmd = s.takes[0]
	}
	if want == bySub {
		want = string(s.says)
	}
	if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": cmd}), c.from)); got != want {
		t.Errorf("answered %.40q", got)
	}
	peers := 0
	for _, n := range w.atPeers {
		peers += n
	}
	if len(s.asked) != c.asked || len(w.atMaster) != c.master || peers != c.peers || done != c.done {
		t.Errorf("asked %q, the master %d times, peers %d times, %d times done", s.asked, len(w.atMaster), peers, done)
	}
	return w
}
