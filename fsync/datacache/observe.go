package datacache

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// set puts an entry into the table. It is the id's turn.
func (s *Store) set(id string, e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table[id] = e
	s.Changed()
}

// saw notes that a minion's files, looking like that, are as the table says.
func (s *Store) saw(id string, what sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[id] = what
}

// unsee undoes saw.
func (s *Store) unsee(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

func (s *Store) isAsSeen(id string, now sight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id] == now
}

// forget removes an entry. It is the id's turn.
func (s *Store) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
	if _, ok := s.table[id]; ok {
		delete(s.table, id)
		s.Changed()
	}
}

// observe brings the table up to what is on disk of a minion, tells the peers of news, and returns the files. With
// quick it returns none if they look as before. It is the id's turn.
func (s *Store) observe(root *os.Root, id string, quick bool) (fileSet, error) {
	life := s.cfg.Keys.Life(id) // before the key, or it may be that of the next one
	pub, ok := s.cfg.Keys.Accepted(id)
	if !ok {
		return nil, nil
	}
	key := fingerprint(pub)
	names := s.layout.names(id)
	e, had := s.entry(id)
	before := look(root, names)
	if quick && had && e.Key == key && e.Life >= life && s.isAsSeen(id, before) {
		return nil, nil
	}
	defer s.reading(before)()
	files, err := read(root, names)
	if err != nil {
		return nil, err
	}
	return s.judge(root, id, key, life, files, before)
}

// reading waits for a place where that much is read, and returns what gives it back. It is an id's turn, and who has a
// place waits for nothing.
func (s *Store) reading(what sight) (done func()) {
	if what.size <= largeFile {
		return func() {}
	}
	s.reads <- struct{}{}
	return func() { <-s.reads }
}

// judge is the second half of observe: what a minion's files, which looked like that before they were read, mean for
// the table.
func (s *Store) judge(root *os.Root, id, key string, life uint64, files fileSet, before sight) (fileSet, error) {
	e, had := s.entry(id)
	if _, err := s.layout.parse(id, files); err != nil {
		if had {
			s.vanished(root, id, key, life, len(files) > 0)
		}
		return nil, nil
	}
	now := entry{Key: key, Life: max(life, e.Life), Hash: files.hash(), MTime: before.mtime, Stamp: e.Stamp, Env: e.Env,
		Part: e.Part}
	former := had && (e.Key != key || e.Life < life && !s.cfg.Master.Preserve)
	switch {
	case former && e.Hash == now.Hash && e.MTime == now.MTime:
		s.forget(id)
		s.miss(id)
		return nil, s.layout.drop(root, id) // of a predecessor with another key, or from before the key was deleted
	case had && e.Key == key && e.Hash == now.Hash:
		if e.MTime != now.MTime && s.cfg.Kind == Mine && s.Scanned() { // sent once more, see renew
			now.Stamp = s.after(e.Stamp)
			s.tell(id, now)
		} else if e.MTime != now.MTime || e.Life != now.Life {
			s.set(id, now)
		}
	default:
		now.Stamp, now.Env, now.Part = s.stamp(before.mtime, e.Stamp), "", false
		s.tell(id, now)
	}
	s.saw(id, before)
	if gone, err := s.recheck(root, id, had); gone || err != nil {
		return nil, err
	}
	return files, nil
}

// vanished handles data that the table knows and that are not there, or cannot be parsed. It is the id's turn.
func (s *Store) vanished(root *os.Root, id, key string, life uint64, broken bool) {
	e, _ := s.entry(id)
	switch {
	case !broken && e.Key == key && e.Gone:
	case !broken && e.Key == key && s.Scanned() && s.layout.cleared(root, id):
		s.tell(id, entry{Key: key, Life: life, Gone: true, Stamp: s.after(e.Stamp)})
		s.unsee(id)
	default: // what the others have is better
		s.forget(id)
		s.miss(id)
	}
}

// tell notes news and has them sent to the peers. It is the id's turn.
func (s *Store) tell(id string, e entry) {
	s.set(id, e)
	s.metrics.news.Inc()
	s.Feed().Add(id)
}

// stampBits is the share of a stamp that counts within a millisecond.
const stampBits = 16

// stampTime is the wall clock in a stamp.
func stampTime(stamp uint64) time.Time { return time.UnixMilli(int64(stamp >> stampBits)) }

// after returns a stamp for what replaces data that have the stamp old, and is later whatever the clocks say.
func (s *Store) after(old uint64) uint64 { return max(s.cfg.Clock.Now(), old+1) }

// stamp returns the stamp of news that replaced what had the stamp old. Until the first scan is done they may have
// come at any time before, which their file tells.
func (s *Store) stamp(mtime int64, old uint64) uint64 {
	now := s.after(old)
	if mtime <= 0 || s.Scanned() {
		return now
	}
	return min(now, max(old+1, uint64(time.Unix(0, mtime).UnixMilli())<<stampBits))
}

// outcome is what became of a received record.
type outcome string

const (
	written  outcome = "written"
	same     outcome = "same"    // a later stamp for what is there already
	stale    outcome = "stale"   // what is there is as late or later
	noKey    outcome = "no_key"  // no accepted key, or another one
	tooEarly outcome = "refused" // the stamp is ahead of any clock
	failed   outcome = "failed"
)

// accept writes a record of another node into the master's cache.
func (s *Store) accept(root *os.Root, r record) (outcome, error) {
	turn := s.turns.of(r.id)
	turn.Lock()
	defer turn.Unlock()
	if err := s.Closed(); err != nil { // the files are those of another process now
		return failed, err
	}
	life := s.cfg.Keys.Life(r.id) // before the key, or it may be that of the next one
	pub, ok := s.cfg.Keys.Accepted(r.id)
	if !ok || fingerprint(pub) != r.key {
		s.miss(r.id)
		return noKey, nil
	}
	if err := s.cfg.Clock.Observe(r.stamp); err != nil {
		return tooEarly, err
	}
	if e, had := s.entry(r.id); had && e.Key == r.key && e.Life >= life && r.stamp <= e.Stamp {
		return stale, nil // a joiner hears everything from each of the others: the disk is not asked again
	}
	what, err := s.merge(root, r, life)
	for again := 0; errors.Is(err, errChanged) && again < maxAgain; again++ {
		what, err = s.merge(root, r, life)
	}
	if err != nil {
		s.miss(r.id)
	}
	return what, err
}

// maxAgain is how often a record is tried again that met a write of the master.
const maxAgain = 3

// merge writes a record unless there are later data. What the master wrote meanwhile gets its own stamp before.
func (s *Store) merge(root *os.Root, r record, life uint64) (what outcome, err error) {
	var have fileSet
	if have, err = s.rewrittenBefore(root, r); err != nil {
		return failed, err
	}
	if have != nil || s.clearedBefore(root, r) {
		s.unsee(r.id)
	} else if have, err = s.observe(root, r.id, false); err != nil {
		return failed, err
	}
	if e, had := s.entry(r.id); had && r.stamp <= e.Stamp {
		return stale, nil
	}
	if have == nil {
		if have, err = s.leftovers(root, r.id); err != nil {
			return failed, err
		}
	}
	if len(r.data.main) == 0 {
		return s.clear(root, r, life, have)
	}
	_, had := s.entry(r.id)
	what, err = s.write(root, r, life, have)
	if err == nil {
		_, err = s.recheck(root, r.id, had)
	}
	return what, err
}

// rewrittenBefore returns a mine that the master wrote since the last scan, cleared of a function say, before its
// minion sent what a record has: that is later. nil: it is not so, to all that can be known.
func (s *Store) rewrittenBefore(root *os.Root, r record) (fileSet, error) {
	e, had := s.entry(r.id)
	if s.cfg.Kind != Mine || !had || e.Gone || e.Key != r.key || len(r.data.main) == 0 || !s.Scanned() {
		return nil, nil
	}
	names := s.layout.names(r.id)
	is := look(root, names)
	if is.count == 0 || is.mtime == e.MTime || !time.Unix(0, is.mtime).Before(stampTime(r.stamp)) {
		return nil, nil
	}
	defer s.reading(is)()
	files, err := read(root, names)
	if err != nil || look(root, names) != is {
		return nil, err
	}
	return files, nil
}

// clearedBefore says whether a mine that is not on the disk any more was most likely cleared before its minion sent
// what a record has: that was since the last scan, which has still seen the mine.
func (s *Store) clearedBefore(root *os.Root, r record) bool {
	e, had := s.entry(r.id)
	if s.cfg.Kind != Mine || !had || e.Gone || e.Key != r.key || len(r.data.main) == 0 {
		return false
	}
	since := stampTime(s.cfg.Clock.Now()).Sub(stampTime(r.stamp))
	return since < s.cfg.Scan && look(root, s.layout.names(r.id)).count == 0 && s.layout.cleared(root, r.id)
}

// halfway is how long a master may take to write the files of one minion. It writes grains after the pillar (3008).
const halfway = 10 * time.Second

// leftovers are files that do not make up data, and have not for a while: grains were cleared beside a pillar that was
// not, or a file was cut short. They give way to what others have; what the master is writing right now does not. It is
// the id's turn.
func (s *Store) leftovers(root *os.Root, id string) (fileSet, error) {
	names := s.layout.names(id)
	seen := look(root, names)
	defer s.reading(seen)()
	files, err := read(root, names)
	// the master may have written it since the first look
	if err != nil || time.Since(time.Unix(0, seen.mtime)).Abs() < halfway || look(root, names) != seen {
		return nil, err
	}
	return files, nil
}

// clear removes what a peer says is gone. It is the id's turn.
func (s *Store) clear(root *os.Root, r record, life uint64, have fileSet) (outcome, error) {
	what := same
	for name, content := range have {
		if err := removeOld(root, name, content); err != nil {
			return failed, err
		}
		what = written
	}
	s.unsee(r.id)
	s.set(r.id, entry{Stamp: r.stamp, Key: r.key, Life: life, Gone: true})
	return what, nil
}

// miss remembers to ask for a record again that could not be taken now.
func (s *Store) miss(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missed) < maxMissed {
		s.missed[id] = struct{}{}
	}
}

// write puts a record in place of what is there. It is the id's turn.
func (s *Store) write(root *os.Root, r record, life uint64, have fileSet) (outcome, error) {
	all, what := maps.Clone(have), same
	if all == nil {
		all = fileSet{}
	}
	files := s.layout.build(r.id, r.data, have)
	var seen sight
	// grains last, as stock does: they make it data
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		content := files[name]
		old, there := have[name]
		if there && bytes.Equal(old, content) {
			continue
		}
		if s.cfg.PillarComes != nil && path.Dir(name) == pillarBank {
			s.cfg.PillarComes(r.id)
		}
		is, err := s.disk.put(root, name, content, old, stampTime(r.stamp))
		if err != nil {
			if e, had := s.entry(r.id); had { // half of it does not count as news
				e.Hash = all.hash()
				s.set(r.id, e)
			}
			return failed, err
		}
		all[name], what, seen = content, written, seen.and(is)
	}
	if what != same {
		if seen.count != len(all) {
			seen = unseen()
		}
		s.saw(r.id, seen) // and not what is seen now: the master may write right after
	}
	e := entry{Stamp: r.stamp, Key: r.key, Life: life, Hash: all.hash(), MTime: look(root, s.layout.names(r.id)).mtime}
	e.Part = r.stamp > 0 && s.layout.pillarsOf(r.data) < len(r.data.pillars)
	if len(r.data.pillars) > 0 {
		e.Env = r.data.pillars[0].env
	}
	s.set(r.id, e)
	return what, nil
}

// purge removes a minion's data. It is the id's turn.
func (s *Store) purge(root *os.Root, id string) error {
	if err := s.layout.purge(root, id); err != nil {
		return err
	}
	s.forget(id)
	s.metrics.purged.Inc()
	s.log.Info("data of a minion removed with its key", "minion", id)
	return nil
}

// orphaned says whether a minion's key is gone, or was for a while, since its data came.
func (s *Store) orphaned(id string, e entry) bool {
	return !s.cfg.Keys.Known(id) || e.Life < s.cfg.Keys.Life(id)
}

// recheck purges data that the table has just got for the first time if their key went meanwhile: purgeUnknown, which
// looks at the table without the id's turn, may have looked before. It is the id's turn.
func (s *Store) recheck(root *os.Root, id string, had bool) (gone bool, err error) {
	if e, has := s.entry(id); had || !has || !s.orphaned(id, e) {
		return false, nil
	}
	return true, s.purgeNow(root, id)
}

// purgeUnknown removes the data of minions whose keys are gone, or were for a while.
func (s *Store) purgeUnknown() {
	var ids []string
	s.mu.Lock()
	for id, e := range s.table {
		if s.orphaned(id, e) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	root, err := s.disk.root()
	if err != nil {
		s.fail("purge", "", err)
		return
	}
	defer root.Close()
	for _, id := range ids {
		if err := s.purgeOne(root, id); err != nil {
			s.fail("purge", id, err)
		}
	}
}

func (s *Store) purgeOne(root *os.Root, id string) error {
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	if _, had := s.entry(id); !had {
		return nil
	}
	return s.purgeNow(root, id)
}

// purgeNow decides what becomes of data whose key is gone, or was for a while. It is the id's turn.
func (s *Store) purgeNow(root *os.Root, id string) error {
	switch known := s.cfg.Keys.Known(id); {
	case known:
		_, err := s.observe(root, id, false)
		return err
	case s.cfg.Master.Preserve:
		s.forget(id)
		return nil
	}
	return s.purge(root, id)
}
