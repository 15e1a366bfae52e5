//go:build linux && (amd64 || arm64) && !nolibcrypto

package libcrypto

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestOpen_Missing(t *testing.T) {
	l, err := open("libcrypto-of-nobody.so.3")
	if l != nil || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "libcrypto-of-nobody.so.3") {
		t.Errorf("%v, %v", l, err)
	}
}

// TestOpen_Another loads a library that has none of the functions.
func TestOpen_Another(t *testing.T) {
	if l, err := open("libm.so.6"); l != nil || !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, %v", l, err)
	}
}

func host(tb testing.TB) *library {
	tb.Helper()
	l, err := load()
	if err != nil {
		tb.Skip(err)
	}
	return l
}

// TestAgainstGo holds the library against crypto/rsa itself.
func TestAgainstGo(t *testing.T) {
	l := host(t)
	hashes := map[crypto.Hash]func() hash.Hash{crypto.SHA1: sha1.New, crypto.SHA224: sha256.New224}
	for _, bits := range []int{2048, 3072, 4096} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		require.NoError(t, err)
		pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		for form, der := range map[string][]byte{"PKCS#1": x509.MarshalPKCS1PrivateKey(key), "PKCS#8": pkcs8} {
			p, err := l.newKey(der)
			require.NoError(t, err, bits, "bits", form)
			for h, newHash := range hashes {
				t.Run(fmt.Sprint(bits, " ", form, " ", h), func(t *testing.T) { againstGo(t, key, p, h, newHash) })
			}
		}
	}
}

func againstGo(t *testing.T, key *rsa.PrivateKey, p *pkey, h crypto.Hash, newHash func() hash.Hash) {
	for range 20 {
		digest := make([]byte, h.Size())
		_, _ = rand.Read(digest)
		want, err := rsa.SignPKCS1v15(nil, key, h, digest)
		require.NoError(t, err)
		if got, err := p.sign(h, digest); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("signature %x, %v; want %x", got, err, want)
		}
	}
	longest := key.Size() - 2*h.Size() - 2
	for _, size := range []int{0, 1, 16, 76, longest - 1, longest} {
		msg := make([]byte, size)
		_, _ = rand.Read(msg)
		ct, err := rsa.EncryptOAEP(newHash(), rand.Reader, &key.PublicKey, msg, nil)
		require.NoError(t, err)
		if got, err := p.decrypt(h, ct); err != nil || !bytes.Equal(got, msg) {
			t.Errorf("%d bytes: %x, %v; want %x", size, got, err, msg)
		}
		for _, at := range []int{0, 1, len(ct) / 2, len(ct) - 1} {
			corrupt := bytes.Clone(ct)
			corrupt[at] ^= 4
			if got, err := p.decrypt(h, corrupt); err == nil {
				t.Errorf("%d bytes, byte %d of the ciphertext changed: %x", size, at, got)
			}
		}
	}
	// Padding of another kind.
	other, err := rsa.EncryptOAEP(newHash(), rand.Reader, &key.PublicKey, []byte("msg"), []byte("a label"))
	require.NoError(t, err)
	if got, err := p.decrypt(h, other); err == nil {
		t.Errorf("another label: %x", got)
	}
}

// TestErrors names functions and reasons, holds no data, and leaves the queue of errors empty.
func TestErrors(t *testing.T) {
	l := host(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der := x509.MarshalPKCS1PrivateKey(key)
	for name, bad := range map[string][]byte{
		"empty": nil, "text": []byte("no key"), "truncated": der[:len(der)-1],
		"half": der[:len(der)/2], "zeros": make([]byte, 600),
		"public": x509.MarshalPKCS1PublicKey(&key.PublicKey),
	} {
		p, err := l.newKey(bad)
		if p != nil || !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	p, err := l.newKey(der)
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err = p.decrypt(crypto.SHA1, bytes.Repeat([]byte{0xff}, p.size))
	if err == nil || !strings.Contains(err.Error(), "EVP_PKEY_decrypt: error:") {
		t.Errorf("beyond the modulus: %v", err)
	}
	if code := l.errGet(); code != 0 {
		t.Errorf("%#x remains in the queue", code)
	}
	for _, digest := range [][]byte{nil, make([]byte, 19), make([]byte, 32)} {
		if sig, err := p.sign(crypto.SHA1, digest); err == nil {
			t.Errorf("a digest of %d bytes is signed: %x", len(digest), sig)
		}
	}
}
