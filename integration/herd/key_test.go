package herd

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

// Any other implementation can use the public half as an ordinary key.
func TestFastKey_Compatible(t *testing.T) {
	k, err := NewFastKey()
	require.NoError(t, err)
	pub, err := saltcrypt.ParsePublicKey(k.PublicText())
	require.NoError(t, err)
	if pub.Text() != k.PublicText() {
		t.Error("the text is not clean")
	}
	for _, algo := range []string{saltcrypt.OAEPSHA1, saltcrypt.OAEPSHA224} {
		ct, err := pub.EncryptOAEP(algo, []byte("a secret"))
		require.NoError(t, err)
		got, err := k.DecryptOAEP(algo, ct)
		if err != nil || string(got) != "a secret" {
			t.Errorf("%s: %q, %v", algo, got, err)
		}
		ct[100] ^= 1
		if _, err := k.DecryptOAEP(algo, ct); err == nil {
			t.Errorf("%s: a changed ciphertext decrypts", algo)
		}
	}
	sig, err := k.SignX931([]byte("salt"))
	require.NoError(t, err)
	if got, err := pub.VerifyX931(sig); err != nil || !bytes.Equal(got, []byte("salt")) {
		t.Errorf("X9.31: %q, %v", got, err)
	}
}

func BenchmarkFastKey(b *testing.B) {
	k, err := NewFastKey()
	require.NoError(b, err)
	pub, _ := saltcrypt.ParsePublicKey(k.PublicText())
	ct, _ := pub.EncryptOAEP(saltcrypt.OAEPSHA1, []byte("a secret"))
	for b.Loop() {
		if _, err := k.DecryptOAEP(saltcrypt.OAEPSHA1, ct); err != nil {
			b.Fatal(err)
		}
	}
}
