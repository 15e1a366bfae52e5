package share

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/metric"
)

// Condition is how the share is.
type Condition uint8

// The conditions, the best first.
const (
	Good      Condition = iota
	Unknown             // not scanned yet
	Different           // another node has another directory
	Broken              // it cannot be read or written
	Hung                // it does not answer
)

// State is a condition with what there is to say about it.
type State struct {
	Condition Condition
	Reason    string    // a sentence; empty when all is well
	Apart     []node.ID // nodes that share nothing, or nothing any more
	Since     time.Time
}

// Peers are the other nodes.
type Peers interface {
	Members() []node.ID
	// Token asks a node for what it has written; ErrIsolated: it shares nothing.
	Token(ctx context.Context, id node.ID) (string, error)
}

// ErrIsolated says that a node is configured to have a file system of its own.
var ErrIsolated = errors.New("share: the node does not share its file system")

// Config is what a Share needs. Logger and Registerer may be nil; zero durations take the defaults named.
type Config struct {
	Dir        string // on the share
	Self       node.ID
	Peers      Peers
	Every      time.Duration // between two looks; 2 s
	Timeout    time.Duration // with a look; 5 s
	Grace      time.Duration // for a node's file to show what the node says; 15 s
	Renew      time.Duration // between two tokens; 30 s
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	look func(dir string, self node.ID, token string, others []node.ID) (map[node.ID]string, error) // tests
}

// Share watches a shared directory.
type Share struct {
	c Config

	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex // guards what follows
	told     string     // the token that was written last; empty: none yet
	state    State
	mismatch map[node.ID]time.Time // since when a node's file is not what the node says
}

// New returns a Share that has not looked yet.
func New(c Config) (*Share, error) {
	if c.Dir == "" || c.Self == "" || c.Peers == nil {
		return nil, errors.New("share: directory, node and peers must be set")
	}
	c.Every = cmp.Or(c.Every, 2*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	c.Renew = cmp.Or(c.Renew, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.look == nil {
		c.look = lookAtShare
	}
	s := &Share{
		c: c, mismatch: map[node.ID]time.Time{},
		state: State{Condition: Unknown, Reason: "the share has not been checked yet", Since: time.Now()},
	}
	if c.Registerer != nil {
		metric.NewSet(c.Registerer, "share").NewGaugeFunc("up",
			"Whether the shared file system answers and is the same for all nodes.", func() float64 {
				if s.State().Condition == Good {
					return 1
				}
				return 0
			})
	}
	return s, nil
}

// Token is what this node has written, so that the others can compare it; empty before the first look.
func (s *Share) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

func (s *Share) noteWritten(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = token
}

// State tells how the share is. It never waits.
func (s *Share) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Open starts to look. It does not wait for the first look.
func (s *Share) Open(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.runLoop(ctx)
	}()
	return nil
}

// Close ends; it does not wait for a look that hangs.
func (s *Share) Close() error {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
	return nil
}

// sight is what a look has found.
type sight struct {
	files map[node.ID]string
	err   error
}

func (s *Share) runLoop(ctx context.Context) {
	tick := time.NewTicker(s.c.Every)
	defer tick.Stop()
	token, renewed := rand.Text(), time.Now()
	for ctx.Err() == nil {
		if time.Since(renewed) > s.c.Renew {
			token, renewed = rand.Text(), time.Now()
		}
		others := s.c.Peers.Members()
		found := make(chan sight, 1)
		go func() { // ends when the disk answers, see the package's comment
			files, err := s.c.look(s.c.Dir, s.c.Self, token, others)
			if err == nil {
				s.noteWritten(token)
			}
			found <- sight{files, err}
		}()
		if !s.awaitLook(ctx, found, others) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitLook waits for the end of a look; false when the Share is closed before.
func (s *Share) awaitLook(ctx context.Context, found <-chan sight, others []node.ID) bool {
	late := time.NewTimer(s.c.Timeout)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-late.C:
			s.setState(Hung, fmt.Sprintf("the share does not answer: %s", s.c.Dir))
		case f := <-found:
			if f.err != nil {
				s.setState(Broken, fmt.Sprintf("the share cannot be used: %v", f.err))
				return true
			}
			s.compareTokens(ctx, f.files, others)
			return true
		}
	}
}

// compareTokens asks the others what they have written and sees whether that is what stands here.
func (s *Share) compareTokens(ctx context.Context, files map[node.ID]string, others []node.ID) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	said := make([]string, len(others))
	errs := make([]error, len(others))
	var wg sync.WaitGroup
	for i, id := range others {
		wg.Go(func() { said[i], errs[i] = s.c.Peers.Token(ctx, id) })
	}
	wg.Wait()
	now := time.Now()
	condition, reason := Good, ""
	var apart []node.ID
	for i, id := range others {
		switch {
		case errors.Is(errs[i], ErrIsolated):
			apart = append(apart, id)
			delete(s.mismatch, id)
			continue
		case errs[i] != nil || said[i] == "": // nothing to compare with
			continue
		case files[id] == said[i]:
			delete(s.mismatch, id)
			continue
		}
		since, known := s.mismatch[id]
		if !known {
			s.mismatch[id], since = now, now
		}
		if now.Sub(since) >= s.c.Grace {
			condition, reason = Different, fmt.Sprintf("%s has another file system at %s", id, s.c.Dir)
		}
	}
	for id := range s.mismatch {
		if !slices.Contains(others, id) {
			delete(s.mismatch, id)
		}
	}
	s.mu.Lock()
	s.state.Apart = apart
	s.mu.Unlock()
	s.setState(condition, reason)
}

func (s *Share) setState(c Condition, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Condition == c && s.state.Reason == reason {
		return
	}
	before := s.state.Condition
	s.state = State{Condition: c, Reason: reason, Apart: s.state.Apart, Since: time.Now()}
	switch {
	case c != Good:
		s.c.Logger.Error("shared file system", "path", s.c.Dir, "reason", reason)
	case before != Unknown:
		s.c.Logger.Info("the shared file system works again", "path", s.c.Dir)
	}
}

// prefix begins the names of the nodes' files. Stock Salt leaves alone what begins with a dot.
const prefix = ".saltclusterd-share."

func tokenPath(dir string, id node.ID) string { return filepath.Join(dir, prefix+string(id)) }
