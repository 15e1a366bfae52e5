package keyset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// Set is the minion keys of one salt-master.
type Set struct {
	Name string    `json:"name"` // the node that this master becomes
	At   time.Time `json:"at"`
	Salt string    `json:"salt,omitempty"` // its version
	// fingerprint of the public key that its minions trust; empty: it has none yet
	Identity string `json:"identity,omitempty"`
	Keys     []Key  `json:"keys"`
}

// Key is one of them.
type Key struct {
	ID    string `json:"id"`
	State string `json:"state"` // adminapi.KeyAccepted, KeyPending, KeyRejected, KeyDenied
	Pub   string `json:"pub"`
}

// Fingerprint is what salt-key -f prints.
func (k Key) Fingerprint() string { return saltcrypt.Fingerprint(k.Pub) }

// Collect reads the keys below pki, and in the master's store where it has one. invalid names what is not a key.
func Collect(ctx context.Context, pki string, store *mmapkeys.Geometry) (keys []Key, invalid []string, err error) {
	found, invalid, err := keydir.Collect(ctx, pki, store)
	if err != nil {
		return nil, nil, err
	}
	keys = make([]Key, 0, len(found))
	for _, f := range found {
		k := Key{ID: f.ID, State: string(f.State), Pub: f.Pub}
		if f.Denied {
			k.State = adminapi.KeyDenied
		}
		keys = append(keys, k)
	}
	return keys, invalid, nil
}

// Counts says how many keys there are by state.
func (s Set) Counts() map[string]int {
	n := map[string]int{}
	for _, k := range s.Keys {
		n[k.State]++
	}
	return n
}

// The head of a file.
const (
	format  = "saltclusterd minion keys"
	version = 1
	// maxFile holds a million keys of 2048 bits.
	maxFile = 1 << 30
)

type file struct {
	Format  string `json:"format"`
	Version int    `json:"v"`
	Set
}

// Errors of Decode.
var (
	// ErrFormat: the file was not written by this package.
	ErrFormat = errors.New("not a file of saltclusterctl keys collect")
	// ErrVersion: a later saltclusterctl has written it.
	ErrVersion = errors.New("written by a newer saltclusterctl")
)

// Encode writes a set.
func Encode(w io.Writer, s Set) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(file{format, version, s})
}

// Decode reads a set that Encode has written. Whoever carried the file may have changed it: what is in it is one that a
// master could have.
func Decode(r io.Reader) (Set, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return Set{}, err
	}
	if len(b) > maxFile {
		return Set{}, fmt.Errorf("%w: longer than %d bytes", ErrFormat, maxFile)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"v"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Format != format {
		return Set{}, ErrFormat
	}
	if head.Version != version {
		return Set{}, ErrVersion
	}
	var f file
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return f.Set, f.validate()
}

func (s Set) validate() error {
	if _, err := node.ParseID(s.Name); err != nil || s.Name == Cluster {
		return fmt.Errorf("%w: %q is not the name of a node", ErrFormat, s.Name)
	}
	type entry struct {
		id     string
		denied bool
	}
	seen := make(map[entry]bool, len(s.Keys))
	for _, k := range s.Keys {
		e := entry{k.ID, k.State == adminapi.KeyDenied}
		switch err := state.ValidMinionID(k.ID); {
		case err != nil:
			return fmt.Errorf("%w: %q: %w", ErrFormat, k.ID, err)
		case seen[e]:
			return fmt.Errorf("%w: %s is in it twice", ErrFormat, k.ID)
		case !keydir.IsKey(k.Pub):
			return fmt.Errorf("%w: its entry for %s is not a public key", ErrFormat, k.ID)
		}
		switch k.State {
		case adminapi.KeyAccepted, adminapi.KeyPending, adminapi.KeyRejected, adminapi.KeyDenied:
		default:
			return fmt.Errorf("%w: the state %q of %s", ErrFormat, k.State, k.ID)
		}
		seen[e] = true
	}
	return nil
}
