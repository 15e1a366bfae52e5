package hostile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

// decided are the directories of keys that were decided about; keys that are merely offered land in the others.
var decided, offered = []string{"minions", "minions_rejected"}, []string{"minions_pre", "minions_denied"}

// keysIn is the keys of a master, by directory and id, with their text.
func keysIn(n *lab.Node, dirs []string) (map[string]string, error) {
	all := map[string]string{}
	for _, dir := range dirs {
		names, err := os.ReadDir(filepath.Join(n.Master.PKIDir(), dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range names {
			path := filepath.Join(dir, e.Name())
			content, err := os.ReadFile(filepath.Join(n.Master.PKIDir(), path))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			all[path] = string(content)
		}
	}
	return all, nil
}

// judgeKeys compares the keys that were decided about with those before.
func (w *world) judgeKeys(n *lab.Node, before map[string]string) error {
	after, err := keysIn(n, decided)
	if err != nil {
		return err
	}
	for path, key := range before {
		if now, there := after[path]; !there {
			w.book.violated("keys", path, "%s: %s is gone", n.Name, path)
		} else if now != key {
			w.book.violated("keys", path, "%s: %s has changed", n.Name, path)
		}
	}
	for path := range after {
		if _, known := before[path]; !known {
			w.book.violated("keys", path, "%s: %s is new", n.Name, clip(path))
		}
	}
	return nil
}

// withdraw removes the keys that were offered during the run on the first node, and waits until they are gone from all.
func (w *world) withdraw(ctx context.Context, before map[string]string) error {
	first := w.cluster.Nodes[0]
	now, err := keysIn(first, offered)
	if err != nil {
		return err
	}
	maps.DeleteFunc(now, func(path, _ string) bool { _, was := before[path]; return was })
	for path := range now {
		if err := os.Remove(filepath.Join(first.Master.PKIDir(), path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return w.without(ctx, maps.Keys(now))
}

// without waits until no node has any of these keys.
func (w *world) without(ctx context.Context, paths func(func(string) bool)) error {
	return lab.Eventually(ctx, time.Minute, "keys to be gone from all nodes", func(context.Context) error {
		for _, n := range w.cluster.Nodes {
			for path := range paths {
				if _, err := os.Lstat(filepath.Join(n.Master.PKIDir(), path)); err == nil {
					return fmt.Errorf("%s has %s", n.Name, path)
				}
			}
		}
		return nil
	})
}

// accept writes the minion's key where the first node's master has its accepted ones, and waits until all nodes have
// it.
func (w *world) accept(ctx context.Context, id, pub string) error {
	first := w.cluster.Nodes[0]
	if err := os.WriteFile(filepath.Join(first.Master.PKIDir(), "minions", id), []byte(pub), 0o644); err != nil {
		return fmt.Errorf("accept the key of %s: %w", id, err)
	}
	return lab.Eventually(ctx, time.Minute, "the key of "+id+" on all nodes", func(context.Context) error {
		for _, n := range w.cluster.Nodes {
			if state := n.Master.KeyState(id); state != "minions" {
				return fmt.Errorf("on %s it is %q", n.Name, state)
			}
		}
		return nil
	})
}
