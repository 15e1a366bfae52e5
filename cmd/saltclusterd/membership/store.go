package membership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// Store makes the node a member. The roster is written first because a node with a record and without a roster cannot
// find the others.
func Store(stateDir string, r *Record, rev uint64, roster []node.Entry) error {
	book, err := peer.OpenBook(RosterPath(stateDir))
	if err != nil {
		return err
	}
	if err := book.Reset(); err != nil { // an earlier cluster may have left one
		return fmt.Errorf("empty the saved roster: %w", err)
	}
	if _, err := book.Set(rev, roster); err != nil {
		return err
	}
	if err := r.Write(stateDir); err != nil {
		return err
	}
	if err := os.Remove(RemovalPath(stateDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// PutAside moves the files of an earlier membership out of the way of the next one. The consensus log is kept as
// raft.left.
func PutAside(stateDir string) error {
	old := filepath.Join(stateDir, "raft.left")
	err := os.RemoveAll(old)
	if rename := os.Rename(RaftDir(stateDir), old); !errors.Is(rename, fs.ErrNotExist) {
		err = errors.Join(err, rename)
	}
	for _, path := range []string{RosterPath(stateDir), KeyDirBase(stateDir), FormerPath(stateDir)} {
		if remove := os.Remove(path); !errors.Is(remove, fs.ErrNotExist) {
			err = errors.Join(err, remove)
		}
	}
	if err = errors.Join(err, durable.SyncDir(stateDir)); err != nil {
		return fmt.Errorf("put the former membership aside: %w", err)
	}
	return nil
}
