package localmaster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

// testKeys are made once: it takes its time under the race detector.
var testKeys = sync.OnceValues(func() (keys [2]*saltcrypt.MasterKey, err error) {
	for i := range keys {
		if keys[i], err = saltcrypt.GenerateMasterKey(2048); err != nil {
			return keys, err
		}
	}
	return keys, nil
})

// twoKeys returns two key pairs, the same ones for all tests.
func twoKeys(t testing.TB) (one, other *saltcrypt.MasterKey) {
	t.Helper()
	keys, err := testKeys()
	require.NoError(t, err)
	return keys[0], keys[1]
}

// testMaster is a configuration whose user is whoever runs the test.
func testMaster(t testing.TB, major int, id string) *Config {
	t.Helper()
	dir := t.TempDir()
	return &Config{
		Version: Version{Major: major}, ID: id, User: "root", PkiDir: filepath.Join(dir, "pki"),
		CacheDir: filepath.Join(dir, "cache"), SockDir: filepath.Join(dir, "sock"), opts: map[string]any{},
		setBy: map[string]string{},
	}
}

func install(t *testing.T, cfg *Config, k *saltcrypt.MasterKey) (changed bool, backup string) {
	t.Helper()
	changed, backup, err := InstallIdentity(cfg, k.PEM(), []byte(k.PublicText()))
	require.NoError(t, err)
	pem, pub, err := ReadIdentity(cfg)
	if err != nil || string(pem) != string(k.PEM()) || saltcrypt.CleanKey(string(pub)) != k.PublicText() {
		t.Fatalf("the pair is not in place: %v", err)
	}
	return changed, backup
}

func TestInstallOver3008Layouts(t *testing.T) {
	old, k := twoKeys(t)
	for name, prepare := range map[string]func(dir string) error{
		"plain master.pem of an older version": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "master.pem"), old.PEM(), 0o400)
		},
		"stock layout": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "n1.pem"), old.PEM(), 0o400),
				os.Symlink(filepath.Join(dir, "n1.pem"), filepath.Join(dir, "master.pem")))
		},
		"another host's name": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "gone.pem"), old.PEM(), 0o400),
				os.Symlink(filepath.Join(dir, "gone.pem"), filepath.Join(dir, "master.pem")))
		},
		"dangling link": func(dir string) error {
			return errors.Join(os.Symlink("/nowhere/x.pem", filepath.Join(dir, "master.pem")),
				os.WriteFile(filepath.Join(dir, "n1.pem"), old.PEM(), 0o400))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testMaster(t, 3008, "n1_master")
			require.NoError(t, errors.Join(os.MkdirAll(cfg.PkiDir, 0o700), prepare(cfg.PkiDir)))
			if changed, backup := install(t, cfg, k); !changed || name != "another host's name" && backup == "" {
				t.Errorf("changed %v, backup %q", changed, backup)
			}
			if text, err := os.ReadFile(filepath.Join(cfg.PkiDir, "master.pem")); err != nil || string(text) != string(k.PEM()) {
				t.Errorf("master.pem does not lead to the key: %v", err)
			}
			if changed, _ := install(t, cfg, k); changed {
				t.Error("changed again")
			}
		})
	}
}

// Hosts that share a pki_dir may have it at different paths; what a stock 3008 master has made there leads to its own.
func TestInstall_RelativeLinks(t *testing.T) {
	k, _ := twoKeys(t)
	for _, major := range []int{3006, 3008} {
		cfg := testMaster(t, major, "n1")
		err := os.MkdirAll(cfg.PkiDir, 0o700)
		for ending, text := range map[string][]byte{".pem": k.PEM(), ".pub": []byte(k.PublicText())} {
			file := filepath.Join(cfg.PkiDir, "n1"+ending)
			err = errors.Join(err, os.WriteFile(file, text, 0o400), os.Symlink(file, filepath.Join(cfg.PkiDir, "master"+ending)))
		}
		require.NoError(t, err)
		if changed, _ := install(t, cfg, k); changed {
			t.Errorf("%d: a master that has the key already would have to be restarted", major)
		}
		for _, ending := range []string{".pem", ".pub"} {
			if text, err := os.Readlink(filepath.Join(cfg.PkiDir, "master"+ending)); err != nil || text != "n1"+ending {
				t.Errorf("%d: master%s leads to %q, %v", major, ending, text, err)
			}
		}
	}
}

// A 3006 that ran as 3008 before must find the key wherever it looks, now and after the next upgrade.
func TestInstallAfterDowngrade(t *testing.T) {
	cfg := testMaster(t, 3008, "n1_master")
	old, k := twoKeys(t)
	install(t, cfg, old)
	cfg.Version.Major = 3006
	if changed, backup := install(t, cfg, k); !changed || filepath.Base(backup)[:7] != "n1.pem." {
		t.Errorf("changed %v, backup %q", changed, backup)
	}
	cfg.Version.Major = 3008
	if changed, _ := install(t, cfg, k); changed {
		t.Error("the upgrade changed something")
	}
}

func TestSameKeyWrittenDifferently(t *testing.T) {
	cfg := testMaster(t, 3007, "n1")
	k, _ := twoKeys(t)
	install(t, cfg, k)
	path := filepath.Join(cfg.PkiDir, "master.pem")
	_ = os.Remove(path)
	text := []byte(strings.ReplaceAll(string(k.PEM()), "\n", "\r\n"))
	require.NoError(t, os.WriteFile(path, text, 0o400))
	if changed, _, err := InstallIdentity(cfg, k.PEM(), nil); err != nil || changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestRefusedIdentities(t *testing.T) {
	k, other := twoKeys(t)
	cfg := testMaster(t, 3008, "n1_master")
	for name, try := range map[string]func() error{
		"no key": func() error { _, _, err := InstallIdentity(cfg, []byte("x"), nil); return err },
		"wrong pair": func() error {
			_, _, err := InstallIdentity(cfg, k.PEM(), []byte(other.PublicText()))
			return err
		},
		"id with a slash": func() error {
			_, _, err := InstallIdentity(testMaster(t, 3008, "../x"), k.PEM(), nil)
			return err
		},
		"empty id": func() error {
			_, _, err := InstallIdentity(testMaster(t, 3008, "_master"), k.PEM(), nil)
			return err
		},
	} {
		if err := try(); !errors.Is(err, ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(cfg.PkiDir); err == nil {
		t.Error("a refused identity left a directory")
	}
}
