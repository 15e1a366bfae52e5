package tokens

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/dirid"
)

// keepScanning looks at the directory when something changes in it, and from time to time.
func (s *Store) keepScanning(ctx context.Context) {
	w := newWatch(s.disk)
	defer w.close()
	tick := time.NewTicker(s.cfg.Timing.Scan)
	defer tick.Stop()
	var checked time.Time
	for first := true; ; first = false {
		w.ensureWatch()
		// A master removes a file that it cannot read, which must not pass for a revocation: so where it costs little, at
		// once.
		check := s.few() || time.Since(checked) >= s.cfg.Timing.Check
		if check {
			checked = time.Now()
		}
		again := s.scanDir(check)
		if first {
			s.SetScanned()
		}
		var soon <-chan time.Time
		if again {
			soon = time.After(s.cfg.Timing.Gone)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-soon:
		case <-w.errors():
		case <-w.hints():
			if !backoff.Sleep(ctx, s.cfg.Timing.Debounce) {
				return
			}
			w.drainHints()
		}
	}
}

// checkedAlways is up to how many tokens files are looked at with each scan; of more, from time to time.
const checkedAlways = 1000

func (s *Store) few() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table.entries) <= checkedAlways
}

// scanDir looks at all tokens, and with check at what files of known ones hold. again says that some are gone since a
// moment only.
func (s *Store) scanDir(check bool) (again bool) {
	root, err := s.disk.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return false // the master has never run
	}
	if err != nil {
		s.Fail("scan", err)
		return false
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.disk.id()
	tokens, err := s.disk.listTokens(root)
	if err != nil {
		s.Fail("scan", err)
		return false
	}
	s.settleDir(id)
	there := make(map[fingerprint]struct{}, len(tokens))
	for _, token := range tokens {
		p := fingerprintOf(token)
		there[p] = struct{}{}
		s.noteFile(root, p, token)
		if check {
			s.checkFile(root, p, token)
		}
	}
	now := s.cfg.Now()
	for p, e := range s.table.entries {
		_, is := there[p]
		switch {
		case e.isOver(now):
			delete(s.table.entries, p)
			delete(s.gone, p)
			s.Changed()
		case is || !e.held:
			delete(s.gone, p)
		case s.disk.id() != id: // it was replaced while we looked
			again = true
		default:
			again = s.noteMissing(p, e, now) || again
		}
	}
	s.whole = true
	return again
}

// settleDir forgets who is on disk when the directory, or the layout in it, is not that of the last look. s.mu is held.
func (s *Store) settleDir(id dirid.ID) {
	layout := s.disk.layout.name()
	if s.table.dir == id.Text() && s.table.layout == layout {
		return
	}
	lost := 0
	for p, e := range s.table.entries {
		if e.held {
			e.held, e.token = false, ""
			s.table.entries[p] = e
			lost++
		}
	}
	s.table.dir, s.table.layout = id.Text(), layout
	s.Changed()
	clear(s.gone)
	if lost > 0 {
		s.log.Warn("the directory of tokens was removed or replaced: they come back from the other nodes", "count", lost)
	}
	s.Feed().Tell(true)
}

// noteFile acts on a file that is there. s.mu is held.
func (s *Store) noteFile(root *os.Root, p fingerprint, token string) {
	e, known := s.table.entries[p]
	switch {
	case known && e.revoked:
		if err := s.disk.removeToken(root, token); err != nil {
			s.Fail("remove", err)
		}
	case known && e.held:
		if e.token == "" { // the first look of this process
			e.token = token
			s.table.entries[p] = e
		}
	default:
		data, expire, err := s.disk.readToken(root, token)
		if err != nil || !s.hasRoom(p) {
			return // half of a file is looked at again when it changes, and with each scan
		}
		sum := sumOf(data)
		if known && e.sum != "" && e.sum != sum {
			return // damaged: another node sends what it was
		}
		e := entry{expire: expire, held: true, sum: sum, token: token}
		if e.isExpired(s.cfg.Now()) {
			return
		}
		err = s.disk.spareToken(root, token, expire)
		if errors.Is(err, fs.ErrNotExist) { // its master was quicker
			err = s.disk.writeToken(root, token, data, expire)
		}
		if err != nil {
			s.Fail("spare", err)
		}
		s.setEntry(p, e)
		s.Feed().Add(p)
	}
}

// checkFile finds out whether the file of a held token holds what it did: not when a power failure came before it was
// on the disk, or something has written into it. Then it is removed, but not revoked, and the other nodes send what it
// was. s.mu is held.
func (s *Store) checkFile(root *os.Root, p fingerprint, token string) {
	e := s.table.entries[p]
	if !e.held {
		return
	}
	at, err := s.disk.readStamp(root, token)
	if err != nil {
		return // one that is gone is revoked by the scan
	}
	if !s.disk.isSpared(at, e.expire) { // made before this was done, or touched since
		if err := s.disk.spareToken(root, token, e.expire); err != nil {
			s.Fail("spare", err)
		} else if at, err = s.disk.readStamp(root, token); err != nil {
			return
		}
	}
	if at == e.stamp {
		return
	}
	data, _, err := s.disk.readToken(root, token)
	if err != nil && !errors.Is(err, errData) {
		return
	}
	if sum := sumOf(data); err == nil && (e.sum == "" || e.sum == sum) {
		if e.sum != sum {
			s.Changed()
		}
		e.sum, e.stamp = sum, at
		s.table.entries[p] = e
		return
	}
	e.held, e.token, e.stamp = false, "", stamp{}
	s.setEntry(p, e)
	// No client is let in by anything other than what was granted, and the removal of a damaged file is not taken for
	// the revocation of the token that comes back.
	if err := s.disk.removeToken(root, token); err != nil {
		s.Fail("remove", err)
	}
	s.log.Warn("the file of an eauth token is damaged: it comes back from the other nodes", "fingerprint", p.short())
	s.Feed().Tell(true)
}

// noteMissing acts on a token whose file is gone and says whether to look again soon. s.mu is held.
func (s *Store) noteMissing(p fingerprint, e entry, now time.Time) (again bool) {
	since, known := s.gone[p]
	if !known {
		s.gone[p] = now
		return true
	}
	if now.Sub(since) < s.cfg.Timing.Gone {
		return true
	}
	delete(s.gone, p)
	s.setEntry(p, entry{expire: e.expire, revoked: true})
	s.Feed().Add(p)
	s.log.Info("eauth token revoked here", "fingerprint", p.short())
	return false
}

func (s *Store) setEntry(p fingerprint, e entry) {
	s.table.entries[p] = e
	s.Changed()
}

// hasRoom says whether the table takes another token. s.mu is held.
func (s *Store) hasRoom(p fingerprint) bool {
	if _, known := s.table.entries[p]; known || len(s.table.entries) < maxLive {
		return true
	}
	if !s.full {
		s.full = true
		s.log.Warn("too many eauth tokens: further ones work only on the node that created them", "count", maxLive)
	}
	return false
}

// displaced is how many entries makeRoom looks at.
const displaced = 1000

// makeRoom says whether the table takes the revocation of a token that is not in it. When even the part for those is
// full, a live token gives up its place and its file: its owner logs in again, and no revoked token
// comes back. s.mu is held.
func (s *Store) makeRoom(root *os.Root) bool {
	if len(s.table.entries) < maxTokens {
		return true
	}
	looked := 0
	for p, e := range s.table.entries {
		if looked++; looked > displaced {
			break
		}
		if e.revoked {
			continue
		}
		if e.token != "" {
			if err := s.disk.removeToken(root, e.token); err != nil {
				s.Fail("remove", err)
				continue
			}
		}
		delete(s.table.entries, p)
		delete(s.gone, p)
		return true
	}
	return false
}
