package keydir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/durable"
)

const (
	baseVersion = 1
	baseName    = "keydir.json"
)

// baseFile is the base as it is stored.
type baseFile struct {
	Version int                  `json:"v"`
	UUID    string               `json:"uuid"`
	Seen    uint64               `json:"seen"`
	Stamp   string               `json:"stamp"`
	Prev    string               `json:"prev,omitempty"`
	Stale   staleness            `json:"stale,omitempty"`
	Dirs    map[string]string    `json:"dirs,omitempty"`
	Keys    map[string]basedFile `json:"keys"`
	Denied  map[string]basedFile `json:"denied,omitempty"`
	Store   *storeFile           `json:"store,omitempty"`
	Held    map[string]uint64    `json:"held,omitempty"`
	Losses  map[string]time.Time `json:"losses,omitempty"`
	Fleets  []fleetSize          `json:"fleets,omitempty"`
}

type basedFile struct {
	State state.KeyState `json:"s,omitempty"`
	Print keyPrint       `json:"p,omitempty"`
	Rev   uint64         `json:"r"`
}

// loadBase returns nil when there is none. A file that cannot be understood is an error: without it every local key
// would be taken for a newcomer's.
func loadBase(dir string) (*base, error) {
	path := filepath.Join(dir, baseName)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read base: %w", err)
	}
	b, err := parseBase(content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w (move it away to let consensus decide about all keys)", path, err)
	}
	return b, nil
}

// parseBase reads a base, on a share another node's. Ids in it become names of files.
func parseBase(content []byte) (*base, error) {
	var f baseFile
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, err
	}
	if f.Version != baseVersion {
		return nil, fmt.Errorf("it has version %d, this saltclusterd reads version %d", f.Version, baseVersion)
	}
	named := []map[string]basedFile{f.Keys, f.Denied}
	if f.Store != nil {
		named = append(named, f.Store.Keys, f.Store.Denied)
	}
	for _, m := range named {
		for id := range m {
			if err := state.ValidMinionID(id); err != nil {
				return nil, fmt.Errorf("a key of %.100q: %w", id, err)
			}
		}
	}
	b := &base{
		UUID: f.UUID, Seen: f.Seen, Stamp: f.Stamp, Prev: f.Prev, Stale: f.Stale,
		Dirs: f.Dirs, Keys: fromFile(f.Keys), Denied: fromFile(f.Denied), Store: f.Store, Held: f.Held,
		Losses: f.Losses, Fleets: f.Fleets,
	}
	if b.Losses == nil {
		b.Losses = map[string]time.Time{}
	}
	if b.Held == nil {
		b.Held = map[string]uint64{}
	}
	if b.Dirs == nil {
		b.Dirs = map[string]string{}
	}
	return b, nil
}

func saveBase(dir string, b *base) error {
	content, err := json.Marshal(baseFile{
		Version: baseVersion, UUID: b.UUID, Seen: b.Seen, Stamp: b.Stamp, Prev: b.Prev, Stale: b.Stale,
		Dirs: b.Dirs, Keys: toFile(b.Keys), Denied: toFile(b.Denied), Store: b.Store, Held: b.Held,
		Losses: b.Losses, Fleets: b.Fleets,
	})
	if err != nil {
		return fmt.Errorf("encode base: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, baseName), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("save base: %w", err)
	}
	return nil
}

func fromFile(m map[string]basedFile) map[string]based {
	out := make(map[string]based, len(m))
	for id, v := range m {
		out[id] = based{entry{v.State, v.Print}, v.Rev}
	}
	return out
}

func toFile(m map[string]based) map[string]basedFile {
	out := make(map[string]basedFile, len(m))
	for id, v := range m {
		out[id] = basedFile{v.State, v.Print, v.Rev}
	}
	return out
}
