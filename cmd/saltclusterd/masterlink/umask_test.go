package masterlink

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
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
			require.NoError(t, os.WriteFile(path, []byte(c.stored), 0o600))
		}
		u := NewUmask(master, path, slog.New(slog.DiscardHandler))
		u.Ask(t.Context())
		check.Equal(t, u.Mask(), c.want, c.name)
	}
	u := NewUmask(master, path, slog.New(slog.DiscardHandler))
	u.set(0o027)
	u.store()
	check.Equal(t, NewUmask(master, path, u.log).Mask(), 0o027, "the next process has")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
