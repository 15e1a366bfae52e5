package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
)

// storeDaemon is a daemon beside a 3008 master with a key store.
func storeDaemon(t *testing.T, more string) *Daemon {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	text := fmt.Sprintf("id: box_master\npki_dir: %s/pki\nkeys.cache_driver: mmap_key\nmmap_key_size: 101\n%s", dir, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	master, err := localmaster.LoadConfig(path, localmaster.Version{Major: 3008})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{}
	cfg.Cluster.IsolatedFilesystem = true
	return &Daemon{master: master, cfg: cfg}
}

func TestHiddenMinionInAStore(t *testing.T) {
	d := storeDaemon(t, "")
	for range 2 {
		if err := d.placeHidden(t.Context(), localmaster.HiddenID, "key"); err != nil {
			t.Fatal(err)
		}
	}
	e, ok, err := d.bank(mmapkeys.Keys).Get(t.Context(), localmaster.HiddenID)
	if err != nil || !ok || e.Listed || string(e.Value) != "\x01key" {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if !strings.HasPrefix(localmaster.HiddenID, mmapkeys.HiddenPrefix) {
		t.Error("a repair would list the hidden minion")
	}
}

func TestWhereKeysAre(t *testing.T) {
	d := storeDaemon(t, "mmap_key_id_size: 40\n")
	if g := d.mirrored(); g == nil || *g != (mmapkeys.Geometry{Slots: 101, SlotSize: 96, KeySize: 40}) {
		t.Errorf("%+v", g)
	}
	fatal := func() (out []string) {
		for _, f := range d.findings() {
			if f.Option == "keys.cache_driver" && f.Fatal {
				out = append(out, f.Message)
			}
		}
		return out
	}
	if f := fatal(); len(f) != 0 {
		t.Errorf("%q", f)
	}
	d.cfg.Cluster.IsolatedFilesystem = false
	if f := fatal(); len(f) != 1 || d.mirrored() != nil {
		t.Errorf("on a share: %q", f)
	}
	d = storeDaemon(t, "")
	if err := os.WriteFile(d.master.Path, []byte("keys.cache_driver: redis\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.master, err = localmaster.LoadConfig(d.master.Path, d.master.Version); err != nil {
		t.Fatal(err)
	}
	if f := fatal(); len(f) != 1 || !strings.Contains(f[0], `"redis"`) || d.mirrored() != nil {
		t.Errorf("another driver: %q", f)
	}
}
