package identity

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltcrypt"
)

func TestReadFile(t *testing.T) {
	master := configtest.Load(t, 3006, "pki_dir: "+t.TempDir()+"\n")
	k := MasterKeys{Master: master, Bank: func() *mmapkeys.Bank { return nil }}
	path := filepath.Join(master.PkiDir, "k")
	if _, err := k.ReadFile(master, "k"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for size, ok := range map[int]bool{0: true, maxKeyFile: true, maxKeyFile + 1: false} {
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		if text, err := k.ReadFile(master, "k"); (err == nil) != ok || ok && len(text) != size {
			t.Errorf("%d bytes: %d, %v", size, len(text), err)
		}
	}
}

func masterPEM(t *testing.T) []byte {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	return key.PEM()
}

// keysInStore are those of a 3008 master that has them in a store, with keys of so many bytes.
func keysInStore(t *testing.T, dir string, size int, options string) MasterKeys {
	t.Helper()
	me, err := user.Current()
	require.NoError(t, err)
	master := configtest.Load(t, 3008, fmt.Sprintf(
		"id: box_master\npki_dir: %s\nkeys.cache_driver: mmap_key\nmmap_key_size: %d\nuser: %s\n%s", dir, size, me.Username, options))
	bank, err := mmapkeys.NewBank(master.PkiDir, mmapkeys.MasterKeys,
		mmapkeys.Configured(func(name string) int { return int(master.Int(name)) }))
	require.NoError(t, err)
	return MasterKeys{Master: master, Bank: func() *mmapkeys.Bank { return bank }}
}

func TestStore(t *testing.T) {
	k := keysInStore(t, t.TempDir(), 101, "")
	if _, _, err := k.Identity(); err == nil {
		t.Error("an identity out of nothing")
	}
	first, second := masterPEM(t), masterPEM(t)
	for i, pem := range [][]byte{first, second} {
		for _, want := range []bool{true, false} {
			if changed, err := k.Store(pem); err != nil || changed != want {
				t.Fatalf("identity %d: changed %v, %v", i, changed, err)
			}
		}
		if got, err := k.readStored("box.pem"); err != nil || !bytes.Equal(got, pem) {
			t.Errorf("identity %d: %s, %v", i, got, err)
		}
	}
	c, err := k.Bank().Read(t.Context(), nil, false)
	require.NoError(t, err)
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

// TestStore_Unreadable: a key that could not be read must not be replaced, because no copy of it would be kept.
func TestStore_Unreadable(t *testing.T) {
	dir := t.TempDir()
	if _, err := keysInStore(t, dir, 101, "").Store(masterPEM(t)); err != nil {
		t.Fatal(err)
	}
	_, err := keysInStore(t, dir, 103, "").Store(masterPEM(t)) // another geometry than that of the file
	if err == nil || !strings.HasPrefix(err.Error(), "read the master's key store: ") {
		t.Error(err)
	}
}

func TestSigningKey(t *testing.T) {
	me, err := user.Current()
	require.NoError(t, err)
	bank := func() *mmapkeys.Bank { return nil }
	off := MasterKeys{Master: configtest.Load(t, 3006, "pki_dir: "+t.TempDir()+"\n"), Bank: bank}
	k := MasterKeys{Bank: bank, Master: configtest.Load(t, 3006,
		fmt.Sprintf("pki_dir: %s\nmaster_sign_pubkey: True\nmaster_sign_key_name: ours\nuser: %s\n", t.TempDir(), me.Username))}
	for name, one := range map[string]MasterKeys{"off": off, "not made yet": k} {
		if text, err := one.SigningKey(); text != nil || err != nil {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	testSigningKeys(t, k)
	for name, mode := range map[string]os.FileMode{"ours.pem": 0o400, "ours.pub": 0o644} {
		if info, err := os.Stat(filepath.Join(k.Master.PkiDir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(k.Master.PkiDir, "ours.pem"), []byte("no key"), 0o600))
	if text, err := k.SigningKey(); text != nil || err == nil {
		t.Errorf("what is no key: %s, %v", text, err)
	}
}

// Nodes compare what their masters sign with, by whatever name and wherever it is.
func TestSigningLedger(t *testing.T) {
	pem := masterPEM(t)
	key, err := saltcrypt.ParseMasterKey(pem)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		options, want string
		off           bool
	}{
		"it does not sign":         {"", "", false},
		"by a key":                 {"master_sign_pubkey: True\n", saltcrypt.Fingerprint(key.PublicText()), false},
		"by a signature of before": {"master_sign_pubkey: True\nmaster_use_pubkey_signature: True\n", "", true},
	} {
		k := keysInStore(t, t.TempDir(), 101, tc.options+"master_sign_key_name: ours\n")
		if _, _, err := k.InstallSigningKey(pem, false); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, os.Remove(filepath.Join(k.Master.PkiDir, "ours.pem"))) // the store has it
		if got, err := k.SigningLedger(); err != nil || got.Items["master_sign.pem"] != tc.want || (got.Off != "") != tc.off ||
			len(got.Items) > 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A master of 3008 reads its signing key from its store.
func TestSigningKey_Store(t *testing.T) {
	k := keysInStore(t, t.TempDir(), 101, "master_sign_pubkey: True\nmaster_sign_key_name: ours\n")
	testSigningKeys(t, k)
	pem, err := k.readStored("ours.pem")
	require.NoError(t, err)
	pub, err := k.readStored("ours.pub")
	if key, err2 := saltcrypt.ParseMasterKey(pem); err != nil || err2 != nil {
		t.Fatal(err, err2)
	} else if got, err := saltcrypt.ParsePublicKey(string(pub)); err != nil || !got.Equal(key.Public()) {
		t.Errorf("ours.pub is not that of ours.pem: %s, %v", pub, err)
	}
}

// testSigningKeys installs keys where there was none.
func testSigningKeys(t *testing.T, k MasterKeys) {
	t.Helper()
	first, second := masterPEM(t), masterPEM(t)
	for i, tc := range []struct {
		pem              []byte
		replace, changed bool
		err              error
		want             []byte
	}{
		{first, false, true, nil, first},
		{first, false, false, nil, first},
		{second, false, false, localmaster.ErrOtherSigningKey, first},
		{second, true, true, nil, second},
	} {
		changed, backup, err := k.InstallSigningKey(tc.pem, tc.replace)
		if changed != tc.changed || !errors.Is(err, tc.err) || (backup != "") != (i == 3) {
			t.Errorf("%d: %t, %q, %v", i, changed, backup, err)
		}
		if text, err := k.SigningKey(); err != nil || !bytes.Equal(text, tc.want) {
			t.Errorf("%d: %s, %v", i, text, err)
		}
	}
}
