package herd

import (
	"fmt"
	"os"
	"path/filepath"
)

// Accept puts the key of all the ids into a master's directory of accepted keys (pki_dir/minions), as salt-key does.
// The master should not run yet.
func Accept(dir string, key Key, ids ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("accept keys: %w", err)
	}
	text := []byte(key.PublicText())
	for _, id := range ids {
		if err := os.WriteFile(filepath.Join(dir, id), text, 0o644); err != nil {
			return fmt.Errorf("accept keys: %w", err)
		}
	}
	return nil
}
