package keydir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

const markerPrefix = ".saltclusterd-keys."

// MarkerPattern matches the marker files in a pki_dir: one for each node that mirrors, or mirrored, keys there.
const MarkerPattern = markerPrefix + "*"

// marker is a file beside the directories whose content changes with every save of the base. When it does not say what
// the base says, the directories are not those the base describes: restored from a backup, mounted from elsewhere, made
// anew. Each node has its own, for on a shared file system several nodes mirror the same directories.
type marker struct{ path string }

func newMarker(pki string, id node.ID) marker {
	return marker{filepath.Join(pki, markerPrefix+string(id))}
}

func newStamp() string { return rand.Text() }

// readStamp returns "" when the marker does not exist.
func (m marker) readStamp() (string, error) {
	f, err := os.Open(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read marker: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return "", fmt.Errorf("read marker: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

func (m marker) writeStamp(stamp string) error {
	if err := durable.WriteFile(m.path, []byte(stamp+"\n"), 0o600); err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	return nil
}

// matchesBase says whether the directories are those b describes.
func (m marker) matchesBase(b *base) (bool, error) {
	stamp, err := m.readStamp()
	if err != nil {
		return false, err
	}
	return stamp != "" && (stamp == b.Stamp || stamp == b.Prev), nil
}
