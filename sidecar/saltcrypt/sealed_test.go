package saltcrypt

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"saltclusterd/integration/require"
)

func TestSealed(t *testing.T) {
	a, b := sealedKeys(t)
	plain := bytes.Repeat([]byte("private key "), 400)
	sealed, err := SealFor(a.Public(), "identity", plain)
	require.NoError(t, err)
	if bytes.Contains(sealed, plain[:64]) {
		t.Error("it stands there in clear")
	}
	if got, err := a.DecodeSealed("identity", sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	changed := slices.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, try := range map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return b.DecodeSealed("identity", sealed) },
		"another label": func() ([]byte, error) { return a.DecodeSealed("backup", sealed) },
		"changed":       func() ([]byte, error) { return a.DecodeSealed("identity", changed) },
		"cut off":       func() ([]byte, error) { return a.DecodeSealed("identity", sealed[:300]) },
		"nothing":       func() ([]byte, error) { return a.DecodeSealed("identity", nil) },
		"too large":     func() ([]byte, error) { return a.DecodeSealed("identity", make([]byte, maxSealed+1)) },
	} {
		if got, err := try(); !errors.Is(err, ErrSealed) || got != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func FuzzDecodeSealed(f *testing.F) {
	a, _ := sealedKeys(f)
	sealed, err := SealFor(a.Public(), "identity", []byte("text"))
	require.NoError(f, err)
	f.Add(sealed)
	f.Add(sealed[:256])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, err := a.DecodeSealed("identity", b); err == nil && (!bytes.Equal(b, sealed) || string(plain) != "text") {
			t.Error("what nobody has sealed is opened")
		}
	})
}

func sealedKeys(t testing.TB) (a, b *MasterKey) {
	t.Helper()
	a, err := GenerateMasterKey(2048)
	require.NoError(t, err)
	if b, err = GenerateMasterKey(2048); err != nil {
		t.Fatal(err)
	}
	return a, b
}
