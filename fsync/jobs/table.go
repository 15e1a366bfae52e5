package jobs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/fsync/feed"
)

// The table of jobs in the state directory tells after a start which jobs there were, so that those missing then are known
// to have been removed. It is the magic, a version, how long the master kept jobs, both lists with their lengths in front,
// and the xxhash of all that; a job is its id and the time of its file jid, a removed one its id.
const (
	tableMagic   = "scjt"
	tableVersion = 1
	tableName    = "jobs.table"
	tableMode    = 0o600
	maxTable     = 256 << 20
)

// table is what was known of jobs.
type table struct {
	keep  time.Duration
	there map[string]int64 // time of the file jid
	gone  []string         // removed by the master's cleaning, the oldest first
}

var errTable = errors.New("malformed table of jobs")

func (t table) encode() []byte {
	out := append([]byte(tableMagic), tableVersion)
	out = binary.AppendVarint(out, int64(t.keep))
	out = binary.AppendUvarint(out, uint64(len(t.there)))
	for jid, at := range t.there {
		out = binary.AppendVarint(appendText(out, jid), at)
	}
	out = binary.AppendUvarint(out, uint64(len(t.gone)))
	for _, jid := range t.gone {
		out = appendText(out, jid)
	}
	return binary.BigEndian.AppendUint64(out, xxhash.Sum64(out))
}

func decodeTable(b []byte) (t table, err error) {
	const head, tail = len(tableMagic) + 1, 8
	if len(b) < head+tail || string(b[:len(tableMagic)]) != tableMagic {
		return t, errTable
	}
	if v := b[head-1]; v != tableVersion {
		return t, fmt.Errorf("%w: version %d", errTable, v)
	}
	body := b[:len(b)-tail]
	if xxhash.Sum64(body) != binary.BigEndian.Uint64(b[len(body):]) {
		return t, fmt.Errorf("%w: damaged", errTable)
	}
	r := &reader{b: body[head:]}
	t.keep = time.Duration(r.number())
	t.there = map[string]int64{}
	for n := r.count(maxJobs); n > 0 && !r.bad; n-- {
		jid := r.jid()
		t.there[jid] = r.number()
	}
	for n := r.count(maxGone); n > 0 && !r.bad; n-- {
		t.gone = append(t.gone, r.jid())
	}
	if r.bad || len(r.b) > 0 {
		return table{}, errTable
	}
	return t, nil
}

// loadTable returns an empty table when there is none.
func loadTable(dir string) (table, error) {
	path := filepath.Join(dir, tableName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return table{}, nil
	}
	if err == nil && info.Size() > maxTable {
		err = fmt.Errorf("%w: %d bytes", errTable, info.Size())
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	var t table
	if err == nil {
		t, err = decodeTable(raw)
	}
	if err != nil {
		return table{}, fmt.Errorf("read table of jobs: %w", err)
	}
	return t, nil
}

// save makes the table appear whole or not at all.
func (t table) save(dir string) error {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("save table of jobs: %w", err)
	}
	defer os.Remove(f.Name()) // no-op after the rename
	_, err = f.Write(t.encode())
	err = errors.Join(err, f.Chmod(tableMode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, tableName))
	}
	if err != nil {
		return fmt.Errorf("save table of jobs: %w", err)
	}
	return nil
}

// restore takes in what was known before the start.
func (x *index) restore(t table) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, jid := range t.gone {
		x.bury(jid)
	}
	x.past, x.pastKeep, x.changes = t.there, t.keep, 0
}

// settlePast notes what the master removed while nobody looked: it was there, is not now, and its time was over. All that
// is there has been seen.
func (x *index) settlePast() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for jid := range x.past {
		x.removedSince(jid)
	}
	x.past = nil
}

// removedSince notes if a job, which is not there, was before the start and has gone in due course. x.mu is held.
func (x *index) removedSince(jid string) {
	at, ok := x.past[jid]
	if !ok {
		return
	}
	delete(x.past, jid)
	if x.nearlyOver(at) || x.overBy(x.pastKeep, at) { // the option may be another one now
		x.bury(jid)
	}
}

// setKeep changes how long the master keeps jobs. What it has removed before, and nobody has missed yet, is noted first.
func (x *index) setKeep(keep time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if keep == x.keep {
		return
	}
	for _, j := range x.jobs {
		if !j.there || !x.nearlyOver(j.at) {
			continue
		}
		if _, err := os.Lstat(x.disk.path(j.jid)); gone(err) {
			x.drop(j)
		}
	}
	x.keep = keep
	x.changes++
}

// snapshot returns what is to be saved; changes tells saved what it covers. Nothing is to be saved when it is 0.
func (x *index) snapshot() (t table, changes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changes == 0 {
		return t, 0
	}
	t.keep = x.keep
	t.there = make(map[string]int64, len(x.jobs)+len(x.past))
	for jid, at := range x.past { // not looked for yet
		t.there[jid] = at
	}
	for jid, j := range x.jobs {
		if j.there {
			t.there[jid] = j.at
		}
	}
	t.gone = slices.Concat(x.goneList[x.goneNext:], x.goneList[:x.goneNext])
	return t, x.changes
}

func (x *index) saved(changes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes -= changes
}

// keepSaving saves the table soon after changes, and a large one less often.
func (s *Store) keepSaving(ctx context.Context) {
	const share = 100 // of the time goes into it
	for rest := s.cfg.Timing.Save; feed.Pause(ctx, rest); {
		began := time.Now()
		if err := s.save(); err != nil {
			s.fail("save", "", err)
		}
		rest = max(s.cfg.Timing.Save, share*time.Since(began))
	}
}

// save stores the table if it has changed.
func (s *Store) save() error {
	t, changes := s.index.snapshot()
	if changes == 0 {
		return nil
	}
	if err := t.save(s.cfg.StateDir); err != nil {
		return err
	}
	s.index.saved(changes)
	return nil
}
