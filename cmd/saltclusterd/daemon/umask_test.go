package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/sidecar/localmaster"
)

// TestUmaskIsRemembered: without a master the one known last counts, and the usual one where none is known.
func TestUmaskIsRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), umaskFile)
	master := &localmaster.Config{SockDir: t.TempDir()}
	for _, c := range []struct {
		name, stored string
		want         uint32
	}{
		{"nothing", "", 0o022}, {"private", "077\n", 0o077}, {"none", "000", 0}, {"nonsense", "xyz", 0o022}, {"impossible", "777", 0o022},
	} {
		if c.stored != "" {
			if err := os.WriteFile(path, []byte(c.stored), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u := newMasterUmask(master, path, slog.New(slog.DiscardHandler))
		u.look(t.Context())
		if u.get() != c.want {
			t.Errorf("%s: %03o", c.name, u.get())
		}
	}
	u := newMasterUmask(master, path, slog.New(slog.DiscardHandler))
	u.set(0o027)
	u.store()
	if next := newMasterUmask(master, path, u.log); next.get() != 0o027 {
		t.Errorf("the next process has %03o", next.get())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
