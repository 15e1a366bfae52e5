package returns

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// Mode says which returns are taken without the master's Python.
type Mode struct {
	Cache   *jobcache.Cache   // nil: none
	Reasons map[string]string // command: why it needs Python; absent: it does not
	// Mend, if set, clears away what a killed master has left of a minion's return (jobcache.Mend), before the master gets
	// the next try.
	Mend func(jid, minion string)
	// Disk, if set, makes what the local master has stored survive a power loss: it stores returns in files and does not
	// sync them.
	Disk Disk
	// Takes, if set, says why the master's job cache does not take so many bytes now (jobcache.Syncer.Takes): the master
	// answers a minion all the same.
	Takes func(bytes int) error
	// Stored, if set, says whether the master's job cache has a minion's return (jobcache.Stored).
	Stored func(jid, minion string) bool
}

// Disk is that of a master's job cache (jobcache.Syncer). One is used until Close; when another takes its place in
// Mode, until what was written to it has been synced.
type Disk interface {
	Sync(context.Context) error
	io.Closer
}

// storage is where returns are stored: the mode in use, and the disks that it and former ones have written to.
type storage struct {
	mode     atomic.Pointer[Mode]
	swapping sync.RWMutex // held while mode is replaced, and to read while its cache is written
	written  disks        // by this process
	stored   disks        // by the local master
}

// Use changes the mode after the master's options have changed. No journal gives up a return before the disk has it,
// also that of the former mode.
func (s *storage) Use(m Mode) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	s.mode.Store(&m)
	if m.Cache == nil {
		s.written.replaceDisk(nil)
	} else {
		s.written.replaceDisk(m.Cache)
	}
	s.stored.replaceDisk(m.Disk)
}

func (s *storage) cache() *jobcache.Cache { return s.mode.Load().Cache }

// Mend clears away what a killed master has left of a minion's return, before the master gets the next try.
func (s *storage) Mend(jid, minion string) {
	if mend := s.mode.Load().Mend; mend != nil {
		mend(jid, minion)
	}
}

// MasterTakes says why the local master could not store a return of so many bytes now; nil: it could, to all we know.
func (s *storage) MasterTakes(bytes int) error {
	takes := s.mode.Load().Takes
	if takes == nil {
		return nil
	}
	if err := takes(bytes); err != nil {
		return fmt.Errorf("the salt-master's job cache takes nothing: %w", err)
	}
	return nil
}

// hasStored says whether the local master has stored a return, although its answer did not arrive. It is false for a
// syndic's load, which holds many returns.
func (s *storage) hasStored(rec *spool.Record) bool {
	is := s.mode.Load().Stored
	if is == nil {
		return false
	}
	peek, err := saltwire.PeekLoad(rec.Load)
	return err == nil && peek.Cmd == "_return" && peek.ID == rec.Minion && is(peek.JID, rec.Minion)
}

// Native says whether returns with that command are taken here, and why not.
func (s *storage) Native(cmd string) (ok bool, reason string) { return s.mode.Load().isNative(cmd) }

func (m *Mode) isNative(cmd string) (ok bool, reason string) {
	if reason = m.Reasons[cmd]; reason != "" {
		return false, reason
	}
	return m.Cache != nil, ""
}

// applyPlan writes the job cache in use; Use waits for its end.
func (s *storage) applyPlan(ctx context.Context, plan jobcache.Plan) error {
	s.swapping.RLock()
	defer s.swapping.RUnlock()
	cache := s.cache()
	if cache == nil {
		return ErrPython
	}
	return cache.Apply(ctx, plan)
}
