package keydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
)

// Found is a key as a master has it.
type Found struct {
	ID     string
	State  state.KeyState // of no meaning where Denied
	Denied bool           // it lies beside the key of that id
	Pub    string
}

// Collect reads the keys that a master has in its directories below pki, and in its store where it has one. It changes
// nothing, needs no cluster, and takes for a key what the mirror would: an id in several directories counts as Salt
// counts it, and where a store has keys, an accepted key file that it could hold but does not know is pending, because
// it has not been seen there. invalid names everything that is not a key. A missing directory counts as empty.
func Collect(ctx context.Context, pki string, g *mmapkeys.Geometry) (found []Found, invalid []string, err error) {
	c := collector{keys: map[string]Found{}, denied: map[string]Found{}, disk: newDisk(pki, nil)}
	for p := range places {
		if err := c.readDir(p); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", c.disk.dirPath(p), err)
		}
	}
	if err := c.readStore(ctx, pki, g); err != nil {
		return nil, nil, fmt.Errorf("read the master's key store: %w", err)
	}
	for _, m := range []map[string]Found{c.keys, c.denied} {
		for _, f := range m {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Found) int {
		if n := strings.Compare(a.ID, b.ID); n != 0 || a.Denied == b.Denied {
			return n
		}
		if b.Denied {
			return -1
		}
		return 1
	})
	slices.Sort(c.invalid)
	return found, c.invalid, nil
}

// collector gathers what Collect finds.
type collector struct {
	disk         *disk
	keys, denied map[string]Found
	invalid      []string
}

func (c *collector) readDir(p place) error {
	entries, err := os.ReadDir(c.disk.dirPath(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		id := e.Name()
		if strings.HasPrefix(id, ".") {
			continue
		}
		text, err := c.disk.readKey(p, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			return err
		case err != nil, state.ValidMinionID(id) != nil:
			c.invalid = append(c.invalid, c.disk.filePath(p, id))
			continue
		}
		f := Found{ID: id, State: p.keyState(), Denied: p == deniedDir, Pub: text}
		if f.Denied {
			c.denied[id] = f
		} else if _, twice := c.keys[id]; !twice { // the directories come in the order in which they count
			c.keys[id] = f
		}
	}
	return nil
}

func (c *collector) readStore(ctx context.Context, pki string, g *mmapkeys.Geometry) error {
	st, err := newStore(pki, g)
	if st == nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for i, b := range st.banks {
		content, err := b.Read(ctx, nil, false)
		if err != nil {
			return err
		}
		st.noteBank(i == 1, content, map[string]struct{}{})
	}
	if !st.hasKeys() {
		return nil
	}
	for id, f := range c.keys {
		if _, told := st.held[subject{id: id}]; !told && f.State == state.KeyAccepted && st.fitsKey(id) {
			f.State = state.KeyPending
			c.keys[id] = f
		}
	}
	for s, h := range st.held {
		f := Found{ID: s.id, State: h.State, Denied: s.denied, Pub: h.text}
		switch {
		case h.garbage:
			c.invalid = append(c.invalid, s.id+" in the key store")
		case s.denied:
			c.denied[s.id] = f
		default:
			c.keys[s.id] = f
		}
	}
	return nil
}

// IsKey says whether a text is one that a key file can hold.
func IsKey(text string) bool {
	_, err := checkText([]byte(text))
	return err == nil
}
