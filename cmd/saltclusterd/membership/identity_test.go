package membership

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

func masterKey(t *testing.T) *saltcrypt.MasterKey {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	return key
}

func TestIdentity_WriteRead(t *testing.T) {
	dir := t.TempDir()
	if _, _, _, err := ReadIdentity(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	first, second := masterKey(t), masterKey(t)
	require.NoError(t, WriteIdentity(dir, first.PEM(), []byte(first.PublicText())))
	private, _ := IdentityPaths(dir)
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("%v, %v", info, err)
	}
	// An interrupted change leaves files that do not match.
	require.NoError(t, WritePublicIdentity(dir, []byte(second.PublicText()+"\n")))
	if public, err := ReadPublicIdentity(dir); err != nil || public != second.PublicText() {
		t.Errorf("%s, %v", public, err)
	}
	for range 2 {
		key, text, public, err := ReadIdentity(dir)
		if err != nil || key.PublicText() != first.PublicText() || !bytes.Equal(text, first.PEM()) ||
			string(public) != first.PublicText() {
			t.Errorf("%s, %v", public, err)
		}
	}
	if public, err := ReadPublicIdentity(dir); err != nil || public != first.PublicText() {
		t.Errorf("%s, %v", public, err)
	}
}

func TestReadIdentity_Damaged(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WriteIdentity(dir, []byte("pem"), []byte("pub")))
	if _, _, _, err := ReadIdentity(dir); err == nil || !strings.Contains(err.Error(), "cluster.pem") {
		t.Error(err)
	}
}
