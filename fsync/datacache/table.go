package datacache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"saltclusterd/fsync/replica"
)

const (
	tableVersion = 1
	maxPrint     = 64
)

// entry is what the table knows of a minion's data on disk.
type entry struct {
	Stamp uint64 `json:"s"`
	Key   string `json:"k"`           // print of the key the data were gathered under
	Life  uint64 `json:"l,omitempty"` // which life of the id that was
	Hash  string `json:"h"`           // of the files
	MTime int64  `json:"m"`           // of the newest file, in nanoseconds since 1970
	Env   string `json:"e,omitempty"` // pillarenv of the pillar in a joined file, as far as known
	Part  bool   `json:"p,omitempty"` // the record had pillars that this master's layout has no place for
	Gone  bool   `json:"g,omitempty"` // a mine that was flushed: it has no file, and older data stay away
}

// told is the stamp for peers. Who holds a part of a record says it is a little older, so that the whole wins.
func (e entry) told() uint64 {
	if e.Part {
		return e.Stamp - 1
	}
	return e.Stamp
}

type tableFile struct {
	Version int              `json:"v"`
	Minions map[string]entry `json:"minions"`
}

// fingerprint names a public key.
func fingerprint(pub string) string {
	sum := sha256.Sum256([]byte(pub))
	return hex.EncodeToString(sum[:16])
}

// loadTable takes in the table that was saved. Nothing is lost without it but the order of what happened within a
// millisecond.
func (s *Store) loadTable(raw []byte) error {
	if raw == nil {
		return nil
	}
	var f tableFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if err := replica.CheckVersion(s.cfg.Kind.table(), f.Version, tableVersion); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.table, f.Minions)
	return nil
}

func (s *Store) encodeTable() ([]byte, error) {
	content, err := json.Marshal(tableFile{Version: tableVersion, Minions: s.copyOfTable()})
	return append(content, '\n'), err
}
