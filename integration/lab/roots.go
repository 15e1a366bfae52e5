package lab

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed all:roots
var rootsFS embed.FS

// bigFileSize of salt://demo/files/big.bin makes the file server send more than one chunk (1 MiB each).
const bigFileSize = 5<<20/2 + 17

// writeRoots lays the demo's states and pillar out below dir, as srv/salt and srv/pillar. They are the same on every
// master.
func writeRoots(dir string) error {
	for from, to := range map[string]string{"roots/states": "srv/salt", "roots/pillar": "srv/pillar"} {
		sub, err := fs.Sub(rootsFS, from)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, to)
		if err := os.RemoveAll(target); err != nil {
			return fmt.Errorf("lay out roots: %w", err)
		}
		if err := os.CopyFS(target, sub); err != nil {
			return fmt.Errorf("lay out roots: %w", err)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), bigFileSize/16+1)[:bigFileSize]
	if err := os.WriteFile(filepath.Join(dir, "srv/salt/demo/files/big.bin"), big, 0o644); err != nil {
		return fmt.Errorf("lay out roots: %w", err)
	}
	return nil
}
