package keydir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/gossip/node"
)

// SharedBase is what keepers agreed with consensus about shared directories. It is for a node that takes a copy of them
// home. Read it before the files are copied: what is decided or edited between the two is found out by comparing, while
// a base that is newer than the files would make keys that are not copied yet look like deleted ones.
type SharedBase struct{ b *base }

// ReadSharedBase reads the base of shared directories. Where they have not had a keeper yet it is empty, and consensus
// decides about all keys.
func ReadSharedBase(pki string) (SharedBase, error) {
	b, err := loadBase(filepath.Join(pki, sharedBase))
	if err != nil {
		return SharedBase{}, fmt.Errorf("shared key directories: %w", err)
	}
	return SharedBase{b}, nil
}

// TakeHome makes the base that of the copy in pki, which is the node's own from now on. stateDir is Config.StateDir.
func (s SharedBase) TakeHome(pki, stateDir string, id node.ID) error {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fmt.Errorf("take the key directories home: %w", err)
	}
	b := newBase(joining)
	if s.b != nil {
		c := *s.b
		b = &c
	}
	b.Stamp, b.Prev, b.Dirs = newStamp(), "", map[string]string{}
	if err := saveBase(stateDir, b); err != nil {
		return fmt.Errorf("take the key directories home: %w", err)
	}
	return newMarker(pki, id).writeStamp(b.Stamp)
}

// Private says that a file in pki_dir, named by its path there, is saltclusterd's own, a cache of the master's or of
// its own key store: it does not belong in a copy.
func Private(path string) bool {
	dir, name := filepath.Split(path)
	return strings.HasPrefix(name, ".saltclusterd") || strings.HasPrefix(name, tempPrefix) ||
		strings.HasPrefix(name, ".mmap_") ||
		dir != "" && name == ".key_cache"
}
