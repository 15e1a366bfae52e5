package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

const (
	bookVersion = 1
	maxBookFile = 4 << 20 // bytes; thousands of members
)

// Book is a Roster in memory, with a copy on disk. The daemon sets it from the consensus state whenever that changes.
// The copy is what lets a restarted node talk at all: raft replays its log only after a leader has spoken to it, and
// the leader is let in by the roster only.
type Book struct {
	path string // empty: memory only

	mu   sync.RWMutex
	rev  uint64
	late bool // the file is older than the memory: storing failed
	byID map[node.ID]node.Entry
	byFP map[node.Fingerprint]node.ID
}

// bookFile is the form on disk.
type bookFile struct {
	Version int          `json:"version"`
	Rev     uint64       `json:"rev"`
	Members []bookMember `json:"members"`
}

type bookMember struct {
	ID          string `json:"id"`
	Addr        string `json:"addr"`
	Fingerprint string `json:"fingerprint"`
}

// OpenBook reads the book at path; a missing file is an empty book. An empty path makes a book in memory only.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path, byID: map[node.ID]node.Entry{}, byFP: map[node.Fingerprint]node.ID{}}
	if path == "" {
		return b, nil
	}
	data, err := readUpTo(path, maxBookFile)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the saved roster: %w", err)
	}
	rev, entries, err := parseBook(data)
	if err == nil {
		b.byID, b.byFP, err = indexEntries(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("read the saved roster %s: %w", path, err)
	}
	b.rev = rev
	return b, nil
}

// Set replaces the entries by those of revision rev, stores them, and returns the certificates that have stopped being
// members': call Port.Revoke for each. Revisions older than the book's are ignored, because a restarted node sees its
// own past first. When storing fails the book is changed all the same, and the error says so.
func (b *Book) Set(rev uint64, entries []node.Entry) (removed []node.Fingerprint, err error) {
	byID, byFP, err := indexEntries(entries)
	if err != nil {
		return nil, fmt.Errorf("set the roster: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if rev < b.rev {
		return nil, nil
	}
	for fp := range b.byFP {
		if _, ok := byFP[fp]; !ok {
			removed = append(removed, fp)
		}
	}
	same := maps.Equal(b.byID, byID)
	b.rev, b.byID, b.byFP = rev, byID, byFP
	if same && !b.late || b.path == "" {
		return removed, nil // a revision alone is not worth a write: replay starts at or before it
	}
	err = b.writeFile()
	if b.late = err != nil; b.late {
		return removed, fmt.Errorf("store the roster: %w", err)
	}
	return removed, nil
}

// Reset empties the book, in memory and on disk, before the node joins another cluster.
func (b *Book) Reset() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rev, b.byID, b.byFP = 0, map[node.ID]node.Entry{}, map[node.Fingerprint]node.ID{}
	if b.path == "" {
		return nil
	}
	return b.writeFile()
}

func (b *Book) writeFile() error {
	f := bookFile{Version: bookVersion, Rev: b.rev}
	for _, id := range slices.Sorted(maps.Keys(b.byID)) {
		e := b.byID[id]
		f.Members = append(f.Members, bookMember{ID: string(id), Addr: e.Addr.String(), Fingerprint: string(e.Fingerprint)})
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(b.path, append(data, '\n'), 0o600)
}

// Lookup implements Roster.
func (b *Book) Lookup(id node.ID) (node.Entry, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.byID[id]
	return e, ok
}

// ByFingerprint implements Roster.
func (b *Book) ByFingerprint(fp node.Fingerprint) (node.ID, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	id, ok := b.byFP[fp]
	return id, ok
}

// Entries implements Roster.
func (b *Book) Entries() []node.Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Collect(maps.Values(b.byID))
}

// Rev returns the revision of the entries; 0: never set.
func (b *Book) Rev() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.rev
}

func parseBook(data []byte) (uint64, []node.Entry, error) {
	var f bookFile
	if err := json.Unmarshal(data, &f); err != nil {
		return 0, nil, err
	}
	if f.Version != bookVersion {
		return 0, nil, fmt.Errorf("version %d is not supported, only %d is", f.Version, bookVersion)
	}
	entries := make([]node.Entry, len(f.Members))
	for i, m := range f.Members {
		e, err := node.ParseEntry(m.ID, m.Addr, m.Fingerprint)
		if err != nil {
			return 0, nil, err
		}
		entries[i] = e
	}
	return f.Rev, entries, nil
}

// indexEntries refuses rosters in which an id or a certificate occurs twice.
func indexEntries(entries []node.Entry) (map[node.ID]node.Entry, map[node.Fingerprint]node.ID, error) {
	byID := make(map[node.ID]node.Entry, len(entries))
	byFP := make(map[node.Fingerprint]node.ID, len(entries))
	for _, e := range entries {
		if _, dup := byID[e.ID]; dup {
			return nil, nil, fmt.Errorf("node %s occurs twice", e.ID)
		}
		if other, dup := byFP[e.Fingerprint]; dup {
			return nil, nil, fmt.Errorf("nodes %s and %s have the same certificate", other, e.ID)
		}
		if e.Fingerprint == "" || !e.Addr.IsValid() || !e.ID.Valid() {
			return nil, nil, fmt.Errorf("node %q: incomplete entry", e.ID)
		}
		byID[e.ID], byFP[e.Fingerprint] = e, e.ID
	}
	return byID, byFP, nil
}
