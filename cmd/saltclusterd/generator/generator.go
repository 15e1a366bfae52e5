package generator

import (
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/localmaster"
)

// Name is what saltclusterd is called as when systemd wants it to generate.
const Name = "saltclusterd-generator"

// dropInPath sorts before what administrators write.
const dropInPath = "saltclusterd.service.d/50-salt-master.conf"

// Run writes the drop-in below the first of the directories that systemd names.
func Run(args []string) error {
	if len(args) < 1 || !filepath.IsAbs(args[0]) {
		return fmt.Errorf("%s is for systemd: it wants the directory to write to", Name)
	}
	text, err := generateDropIn(config.DefaultPath)
	if err != nil {
		return err
	}
	path := filepath.Join(args[0], dropInPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write drop-in: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write drop-in: %w", err)
	}
	return nil
}

// generateDropIn reads what it needs. Mistakes in saltclusterd's own configuration are the daemon's to report.
func generateDropIn(path string) ([]byte, error) {
	cfg, _ := config.Read(path)
	if cfg.Cluster.Witness {
		return dropIn(cfg, nil, pathExists), nil
	}
	// The options read here have the same defaults in all versions, and no other program is started to ask for it.
	master, err := localmaster.LoadConfig(cfg.Salt.Config, localmaster.Version{Major: localmaster.MaxMajor})
	if err != nil {
		return nil, err
	}
	return dropIn(cfg, master, pathExists), nil
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
