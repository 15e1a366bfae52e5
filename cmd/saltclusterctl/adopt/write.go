package adopt

import (
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/durable"
	"saltclusterd/sidecar/localmaster"
)

// Write writes the files of a plan. saltclusterd's own come first, and have to be without a mistake before the
// salt-master's are touched. own is saltclusterd's main configuration file.
func Write(own string, files []File) error {
	for _, f := range files {
		if f.master {
			if _, err := config.Load(own); err != nil {
				return fmt.Errorf("saltclusterd's configuration has an error, so the salt-master's was not changed: %w", err)
			}
		}
		if err := f.writeFile(); err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes the file appear whole or not at all, and its directory when it is missing.
func (f File) writeFile() error {
	if f.act != nil {
		return f.act()
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	o := durable.Options{Mode: f.mode}
	if f.owner != localmaster.Unowned {
		o.Owner = (*durable.Owner)(&f.owner)
	}
	return durable.Write(f.Path, o, durable.Content(f.text))
}
