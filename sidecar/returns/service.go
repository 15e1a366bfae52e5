package returns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/once"
)

// Names of the journals' directories.
const (
	ownName    = "own"
	pythonName = "python"
	stuckName  = "stuck"
	toPrefix   = "to."
)

// Service takes returns. Create it with New, then Open; Close ends it.
type Service struct {
	c       Config
	metrics *metrics
	firer   *jobcache.Firer
	window  *once.Window
	storage

	own, python *journal
	stuck       *stuck
	unanswered  *unanswered
	served      atomic.Int64  // bytes of batches that Handler is taking
	stuckAfter  time.Duration // see stuck.go
	fireWithin  time.Duration // see own.go
	aheadAfter  time.Duration // see ahead.go
	aheadAgain  time.Duration
	handOffs    chan struct{} // holds one for each return that is being handed to another node's journal

	mu     sync.Mutex // guards what follows
	kept   map[node.ID]*journal
	opened bool
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New checks the configuration; it touches nothing.
func New(c Config) (*Service, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	s := &Service{
		c: c, metrics: newMetrics(c.Registerer), window: once.NewWindow(once.Size), kept: map[node.ID]*journal{},
		firer:      jobcache.NewFirer(jobcache.FirerConfig{Bus: c.Bus, Behind: c.Behind, Logger: c.Logger}),
		stuckAfter: stuckAfter,
		fireWithin: fireWithin, aheadAfter: aheadAfter, aheadAgain: aheadAgain, handOffs: make(chan struct{}, maxHandOffs),
	}
	s.Use(c.Mode)
	s.stuck, s.unanswered = &stuck{s: s}, newUnanswered(s)
	var err error
	if s.own, err = s.newOwn(); err != nil {
		return nil, err
	}
	if s.python, err = s.newPython(); err != nil {
		return nil, err
	}
	s.stuck.journal, err = s.newStuck()
	return s, err
}

// Open opens the journals that are there and begins to empty them. ctx ends nothing later.
func (s *Service) Open(ctx context.Context) (err error) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	if err := s.unanswered.openDir(s.ctx); err != nil { // before what hands to it
		return err
	}
	for _, j := range []*journal{s.python, s.stuck.journal, s.own} { // own hands to the others
		if err := j.spool.Open(ctx); err != nil {
			return fmt.Errorf("journal %s: %w", j.name, err)
		}
	}
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	entries, err := os.ReadDir(s.c.Dir)
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), toPrefix)
		id, bad := node.ParseID(name)
		if !ok || bad != nil || !e.IsDir() {
			continue
		}
		if _, err := s.openKeeper(id); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the consumers and closes journals and job cache; what they have not done is there for the next process.
func (s *Service) Close() error { return s.closeAll() }

func (s *Service) closeAll() error {
	s.mu.Lock()
	s.opened = false
	all := []*journal{s.own, s.stuck.journal, s.python}
	for _, j := range s.kept {
		all = append(all, j)
	}
	s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
	var errs []error
	for _, j := range all {
		errs = append(errs, j.spool.Close())
		j.ended()
	}
	s.unanswered.waitEnd()
	return errors.Join(append(errs, s.stored.closeDisks(), s.written.closeDisks())...)
}

// openKeeper returns the journal of what is kept for another node.
func (s *Service) openKeeper(id node.ID) (*journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.kept[id]; j != nil {
		return j, nil
	}
	if !s.opened {
		return nil, errNotOpen
	}
	j, err := s.newKeeper(id)
	if err == nil {
		if err = j.spool.Open(s.ctx); err != nil {
			j.forget()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("journal of returns for %s: %w", id, err)
	}
	s.kept[id] = j
	return j, nil
}

var errNotOpen = errors.New("returns: not open")

func (s *Service) path(name string) string { return filepath.Join(s.c.Dir, name) }
