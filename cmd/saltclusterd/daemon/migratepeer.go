package daemon

import (
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/sidecar/adminapi"
)

// mayCopyTo decides whether another node may have the share copied to a directory of its choice. Its operator chose it, or
// somebody who has stolen a certificate: so it must be there already, and hold nothing but what such a copy holds.
func (g *migration) mayCopyTo(to string) error {
	if to == "" || filepath.Clean(to) == g.d.migrateTo("") {
		return nil
	}
	names := map[string]bool{}
	for _, t := range g.plan(to).Trees {
		if rel, err := filepath.Rel(to, t.To); err == nil {
			first, _, _ := strings.Cut(rel, string(filepath.Separator))
			names[first] = true
		}
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return adminapi.Errorf(adminapi.CodeRefused, "make it there first: mkdir "+to,
			"%s takes a directory from another node only if it is there: %v", g.d.id, err)
	}
	for _, e := range entries {
		if !names[e.Name()] {
			return adminapi.Errorf(adminapi.CodeRefused, "name an empty directory",
				"%s takes a directory from another node only if it is empty, but %s holds %q", g.d.id, to, e.Name())
		}
	}
	return nil
}
