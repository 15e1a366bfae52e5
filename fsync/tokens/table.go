package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/replica"
)

// fingerprint names a token without being one.
type fingerprint [sha256.Size]byte

func fingerprintOf(token string) fingerprint { return sha256.Sum256([]byte(token)) }

// short is the form for people and logs.
func (p fingerprint) short() string { return hex.EncodeToString(p[:6]) }

// entry is what the table knows of a token.
type entry struct {
	expire  int64  // seconds since 1970
	revoked bool   // final
	held    bool   // its file was there at the last look
	sum     string // of its data, in short: they never change; empty in a table of an older version
	token   string // of a held one, once its file was seen; not in the file of the table
	stamp   stamp  // of its file when it was read; likewise
}

// stamp is what the kernel says of a file that changes when its content does.
type stamp struct {
	size         int64
	mtime, ctime int64
	ino          uint64
}

// sumOf is enough to tell that data are not those there were; who alters them on purpose is not the matter.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

const (
	// maxTokens bounds the table. A client that asks for a token with every request makes many.
	maxTokens = 100_000
	// maxLive is up to where it takes live tokens that it does not know. The rest is for revocations of such tokens.
	maxLive = maxTokens - maxTokens/10
)

const (
	// early is how long before its time a master may remove an expired token: 3008 rounds down.
	early = 2
	// grace is how long after its expiry a revoked token is remembered, because clocks may be behind.
	grace = 3600
)

func (e entry) isExpired(now time.Time) bool { return e.expire-early <= now.Unix() }

// isOver says whether an entry can be forgotten.
func (e entry) isOver(now time.Time) bool {
	if e.revoked {
		return e.expire+grace <= now.Unix()
	}
	return e.isExpired(now)
}

const (
	tableVersion = 1
	tableName    = "tokens.json"
	tempPrefix   = ".saltcluster-"
)

// table is all tokens by print, with the directory it is about: what is missing from another one was not revoked.
type table struct {
	layout  string
	dir     string
	entries map[fingerprint]entry
}

type tableFile struct {
	Version int                  `json:"v"`
	Layout  string               `json:"layout"`
	Dir     string               `json:"dir"`
	Tokens  map[string]tableLine `json:"tokens"`
}

type tableLine struct {
	Expire  int64  `json:"e"`
	Revoked bool   `json:"r,omitempty"`
	Held    bool   `json:"h,omitempty"`
	Sum     string `json:"s,omitempty"`
}

// loadTable takes in the table that was saved; one that cannot be understood counts as none.
func (s *Store) loadTable(raw []byte) error {
	if raw == nil {
		return nil
	}
	t, err := decodeTable(raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = t
	return nil
}

func decodeTable(raw []byte) (table, error) {
	var written struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return table{}, err
	}
	if err := replica.CheckVersion(tableName, written.Version, tableVersion); err != nil {
		return table{}, err
	}
	var f tableFile // of which another version may have made something else
	if err := json.Unmarshal(raw, &f); err != nil {
		return table{}, err
	}
	t := table{layout: f.Layout, dir: f.Dir, entries: make(map[fingerprint]entry, len(f.Tokens))}
	for text, l := range f.Tokens {
		var p fingerprint
		if n, err := hex.Decode(p[:], []byte(text)); err != nil || n != len(p) || len(text) != 2*len(p) {
			return table{}, fmt.Errorf("invalid fingerprint %q", text)
		}
		t.entries[p] = entry{expire: l.Expire, revoked: l.Revoked, held: l.Held && !l.Revoked, sum: l.Sum}
	}
	return t, nil
}

// encodeTable waits until the files that the table says are there would be there after a power failure: one that is
// missing then would count as revoked.
func (s *Store) encodeTable() ([]byte, error) {
	s.mu.Lock()
	raw, err := s.table.encodeFile()
	s.mu.Unlock()
	return raw, errors.Join(err, s.disk.syncDir())
}

func (t table) encodeFile() ([]byte, error) {
	f := tableFile{Version: tableVersion, Layout: t.layout, Dir: t.dir, Tokens: make(map[string]tableLine, len(t.entries))}
	for p, e := range t.entries {
		f.Tokens[hex.EncodeToString(p[:])] = tableLine{Expire: e.expire, Revoked: e.revoked, Held: e.held, Sum: e.sum}
	}
	raw, err := json.Marshal(f)
	return append(raw, '\n'), err
}
