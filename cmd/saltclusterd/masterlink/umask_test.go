package masterlink

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/sidecar/localmaster"
)

// Without a master the umask known last counts, and the usual one where none is known.
func TestUmask_Remembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "umask")
	master := &localmaster.Config{SockDir: t.TempDir()}
	for _, c := range []struct {
		name, stored string
		want         uint32
	}{
		{"nothing", "", 0o022}, {"private", "077\n", 0o077}, {"none", "000", 0},
		{"nonsense", "xyz", 0o022}, {"impossible", "777", 0o022},
	} {
		if c.stored != "" {
			if err := os.WriteFile(path, []byte(c.stored), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u := NewUmask(master, path, slog.New(slog.DiscardHandler))
		u.Ask(t.Context())
		if u.Mask() != c.want {
			t.Errorf("%s: %03o", c.name, u.Mask())
		}
	}
	u := NewUmask(master, path, slog.New(slog.DiscardHandler))
	u.set(0o027)
	u.store()
	if next := NewUmask(master, path, u.log); next.Mask() != 0o027 {
		t.Errorf("the next process has %03o", next.Mask())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
