package datacache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"saltclusterd/durable"
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

// loadTable returns an empty table and an error when there is one that cannot be understood. Nothing is lost with it
// but the order of what happened within a millisecond.
func loadTable(path string) (map[string]entry, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]entry{}, nil
	}
	if err != nil {
		return map[string]entry{}, fmt.Errorf("read table of minion data: %w", err)
	}
	var f tableFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return map[string]entry{}, fmt.Errorf("read table of minion data: %w", err)
	}
	if f.Version != tableVersion {
		return map[string]entry{}, fmt.Errorf("table of minion data has version %d, not %d", f.Version, tableVersion)
	}
	if f.Minions == nil {
		f.Minions = map[string]entry{}
	}
	return f.Minions, nil
}

// saveTable makes the table appear whole or not at all.
func saveTable(path string, content []byte) error {
	if err := durable.WriteFile(path, content, fileMode); err != nil {
		return fmt.Errorf("save table of minion data: %w", err)
	}
	return nil
}

func encodeTable(table map[string]entry) ([]byte, error) {
	content, err := json.Marshal(tableFile{Version: tableVersion, Minions: table})
	if err != nil {
		return nil, fmt.Errorf("encode table of minion data: %w", err)
	}
	return append(content, '\n'), nil
}
