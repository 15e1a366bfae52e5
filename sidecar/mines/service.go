package mines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/saltvalue"
)

// commands are what minions send about mines.
var commands = []string{cmdStore, cmdDelete, cmdFlush, cmdGet}

const (
	cmdStore  = "_mine"
	cmdDelete = "_mine_delete"
	cmdFlush  = "_mine_flush"
	cmdGet    = "_mine_get"
)

// Commands lists what minions send about mines.
func Commands() []string { return append([]string(nil), commands...) }

// ErrNotHere is a Store's error for a mine that only the master's own code can change.
var ErrNotHere = errors.New("mines: only the master's own code can change it")

// Store changes mines (datacache.Store).
type Store interface {
	// Change lets edit decide what becomes of a mine, given what it is now (nil: there is none), and waits until the other
	// nodes have it, for settle at most. Without write nothing becomes of it; else then takes its place, and nil removes
	// it. It may ask edit again. Errors: ErrNotHere, edit's, the disk's, ctx's while it waits for the mine; then the mine
	// is as it was.
	Change(ctx context.Context, id string, edit func(now []byte) (then []byte, write bool, err error),
		settle time.Duration) error
}

// Keys is what the cluster knows of minion keys.
type Keys interface {
	// Accepted returns the accepted key of a minion.
	Accepted(id string) (pub string, ok bool)
	// IDs lists the minions with an accepted key; asked only for targets with wildcards.
	IDs() []string
}

// Config configures a Service.
type Config struct {
	Store Store
	Keys  Keys
	// Settle is how long an answer waits at most for the other nodes to have what was written (500 ms): who has heard it
	// may ask any master.
	Settle time.Duration

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Service answers requests. Create it with New; it is ready after Use.
type Service struct {
	c       Config
	metrics *metrics
	mode    atomic.Pointer[mode]
	reading chan struct{} // a place for each _mine_get at work
	parsing chan struct{} // and for each large load of another kind that is looked at before it waits for its turn
}

type mode struct {
	set    *Settings
	reason string
}

// maxReading is how many _mine_get are answered at a time, for each may hold many mines in memory, and how many large
// loads are looked at.
const maxReading = 4

// maxLoad bounds a load that is taken apart here, which takes many times its size in memory.
const maxLoad = 2 << 20

// New checks the configuration.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Keys == nil {
		return nil, fmt.Errorf("mines: incomplete configuration")
	}
	c.Settle = cmp.Or(c.Settle, 500*time.Millisecond)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{c: c, metrics: newMetrics(c.Registerer), reading: make(chan struct{}, maxReading),
		parsing: make(chan struct{}, maxReading)}
	s.Use(nil, "not configured yet")
	return s, nil
}

// Use changes the settings after the master's options have changed. With nil only the master answers, and reason says
// why.
func (s *Service) Use(set *Settings, reason string) { s.mode.Store(&mode{set, reason}) }

// Native says whether a command is answered here, and why not.
func (s *Service) Native(cmd string) (ok bool, reason string) {
	m := s.mode.Load()
	switch {
	case m.set == nil:
		return false, m.reason
	case cmd == cmdGet && m.set.unread != "":
		return false, m.set.unread
	}
	for _, known := range commands {
		if cmd == known {
			return true, ""
		}
	}
	return false, "it is not a command about mines"
}

// Takes says whether a command may be answered here now.
func (s *Service) Takes(cmd string) bool {
	ok, _ := s.Native(cmd)
	return ok
}

// Answer gives the answer to finish, once, or returns an error: then nothing was done, and only a master can answer. It
// may take its time.
func (s *Service) Answer(ctx context.Context, cmd, minion string, load []byte, finish func(reply []byte)) error {
	reply, err := s.answerLoad(ctx, cmd, minion, load)
	s.metrics.countRequest(cmd, err)
	if err != nil {
		s.c.Logger.Debug("request about a mine left to the salt-master", "minion", minion, "cmd", cmd, "err", err)
		return err
	}
	finish(reply)
	return nil
}

func (s *Service) answerLoad(ctx context.Context, cmd, minion string, load []byte) ([]byte, error) {
	set := s.mode.Load().set
	if set == nil {
		return nil, saltvalue.Needs("everything about mines")
	}
	if len(load) > maxLoad {
		return nil, saltvalue.Needs("a load of %d bytes", len(load))
	}
	if cmd == cmdGet {
		return s.getMines(ctx, set, minion, load)
	}
	e, err := s.parseEdit(ctx, cmd, minion, load)
	if err != nil {
		return nil, err
	}
	return s.changeMine(ctx, minion, e)
}

// parseEdit is editFor, which holds no more than the load while that waits for its minion's turn.
func (s *Service) parseEdit(ctx context.Context, cmd, minion string, load []byte) (editor, error) {
	large := len(load) > largeLoad
	if large {
		select {
		case s.parsing <- struct{}{}:
			defer func() { <-s.parsing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e, err := editFor(cmd, minion, load)
	if err != nil || !large {
		return e, err
	}
	return func(now []byte) ([]byte, bool, []byte, error) {
		e, err := editFor(cmd, minion, load) // once more, when its turn has come
		if err != nil {
			return nil, false, nil, err
		}
		return e(now)
	}, nil
}

// parseOwnLoad takes the load of a minion apart.
func parseOwnLoad(minion string, load []byte) (saltvalue.Fields, error) {
	d, err := saltvalue.ParseLoad(load)
	if err != nil {
		return nil, err
	}
	raw, _ := d.Get("id")
	if id, ok := saltvalue.Text(raw); !ok || id != minion {
		return nil, saltvalue.Needs("a load without the id of its minion")
	}
	return d, nil
}

// editFor takes a load apart that changes a mine.
func editFor(cmd, minion string, load []byte) (editor, error) {
	d, err := parseOwnLoad(minion, load)
	if err != nil {
		return nil, err
	}
	switch cmd {
	case cmdStore:
		return parseStore(d)
	case cmdDelete:
		return parseDelete(d)
	case cmdFlush:
		return flushMine, nil
	}
	return nil, saltvalue.Needs("a command of another kind")
}

// largeLoad is from how many bytes on a load is not kept as it was taken apart while it waits for its minion's turn:
// many that wait for each other would take many times the memory that the edge has counted for them.
const largeLoad = 16 << 10

// changeMine has the store edit a mine and waits, but not for long, until the others have it. For the mine itself it
// waits as long as the request lasts: a master that got this one instead would write between those that wait here.
func (s *Service) changeMine(ctx context.Context, minion string, e editor) (reply []byte, err error) {
	err = s.c.Store.Change(ctx, minion, func(now []byte) (then []byte, write bool, err error) {
		then, write, reply, err = e(now)
		return then, write, err
	}, s.c.Settle)
	return reply, err
}

// reason of an error, for metrics.
func outcomeOf(err error) string {
	_, python := errors.AsType[*saltvalue.NeedsPython](err)
	switch {
	case err == nil:
		return "answered"
	case python, errors.Is(err, ErrNotHere):
		return "needs_python"
	case errors.Is(err, saltvalue.ErrMalformed):
		return "malformed"
	}
	return "failed"
}
