package keydir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"saltclusterd/consensus/state"
	"saltclusterd/durable"
)

// overruledFiles keeps copies of key files that consensus overruled: <dir>/<minions…>/<id>.<hash>. The same content is
// kept once.
type overruledFiles struct {
	dir string
	max int // files per directory; zero: maxOverruled

	count [places]int
	known [places]bool
}

const (
	maxOverruled     = 50_000
	maxOverruledName = 200
)

// keepFile copies one file. When the directory is full it does nothing: the key in force is in consensus.
func (a *overruledFiles) keepFile(p place, id, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return nil // gone, or a link: nothing to lose
	}
	if err != nil {
		return fmt.Errorf("put key file aside: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, state.MaxPub))
	if err != nil {
		return fmt.Errorf("put key file aside: %w", err)
	}
	return a.storeFile(p, id, content)
}

func (a *overruledFiles) storeFile(p place, id string, content []byte) error {
	dir := filepath.Join(a.dir, p.String())
	if !a.known[p] {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("put key file aside: %w", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("put key file aside: %w", err)
		}
		a.count[p], a.known[p] = len(entries), true
	}
	limit := a.max
	if limit == 0 {
		limit = maxOverruled
	}
	if a.count[p] >= limit {
		return nil
	}
	sum := sha256.Sum256(content)
	if len(id) > maxOverruledName {
		long := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(long[:])
	}
	name := filepath.Join(dir, id+"."+hex.EncodeToString(sum[:4]))
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	// Whole or not at all: what a full disk took in part must not count as kept when this is tried again.
	if err := durable.WriteFile(name, content, 0o600); err != nil {
		return fmt.Errorf("put key file aside: %w", err)
	}
	a.count[p]++
	return nil
}
