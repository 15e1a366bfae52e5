package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
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

func masterPEM(t *testing.T) []byte {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	return key.PEM()
}

func TestIdentityInAStore(t *testing.T) {
	d := storeDaemon(t, "user: ''\n")
	if _, _, err := d.masterIdentity(); err == nil {
		t.Error("an identity out of nothing")
	}
	first, second := masterPEM(t), masterPEM(t)
	for i, pem := range [][]byte{first, second} {
		for _, want := range []bool{true, false} {
			if changed, err := d.storeIdentity(pem); err != nil || changed != want {
				t.Fatalf("identity %d: changed %v, %v", i, changed, err)
			}
		}
		if got, err := d.storedMasterKey("box.pem"); err != nil || !bytes.Equal(got, pem) {
			t.Errorf("identity %d: %s, %v", i, got, err)
		}
	}
	c, err := d.bank(mmapkeys.MasterKeys).Read(t.Context(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for key, e := range c.Entries {
		if strings.HasSuffix(key, ".bak") && bytes.Equal(e.Value, first) {
			kept++
		}
	}
	if kept != 1 || len(c.Entries) != 3 {
		t.Errorf("%d entries, the former key %d times", len(c.Entries), kept)
	}
}
