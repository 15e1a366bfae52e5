package libcrypto

import (
	"bytes"
	"crypto"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"saltclusterd/sidecar/saltcrypt"
)

func newKey(t testing.TB, bits int) *saltcrypt.MasterKey {
	t.Helper()
	m, err := saltcrypt.GenerateMasterKey(bits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// accelerated skips where the program has no OpenSSL: the default build, and hosts without the library.
func accelerated(t testing.TB, m *saltcrypt.MasterKey) *Key {
	t.Helper()
	k, err := Accelerate(m)
	if err != nil {
		t.Skip(err)
	}
	return k
}

func TestAccelerateSaysWhyNot(t *testing.T) {
	if _, err := Accelerate(newKey(t, 1024)); err != nil && !errors.Is(err, ErrNotBuilt) && !errors.Is(err, ErrUnfit) {
		t.Error(err)
	}
}

// TestGolden runs the vectors that were recorded from Salt, as saltcrypt's own test does.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden vectors: %v", err)
	}
	for _, file := range files {
		var v struct {
			Keys map[string]struct{ Private string }
			OAEP []struct {
				Key, Algo string
				Msg, Text []byte
			}
			PKCS1 []struct {
				Key, Algo string
				Data, Sig []byte
			}
		}
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &v)
		}
		if err != nil || len(v.OAEP) == 0 || len(v.PKCS1) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		keys := map[string]*Key{}
		for name, text := range v.Keys {
			m, err := saltcrypt.ParseMasterKey([]byte(text.Private))
			if err != nil {
				t.Fatal(err)
			}
			keys[name] = accelerated(t, m)
			if left := keys[name].Left(); len(left) > 0 {
				t.Logf("%s: Go does %v", keys[name].Version(), left)
			}
		}
		for _, row := range v.OAEP {
			if msg, err := keys[row.Key].DecryptOAEP(row.Algo, row.Text); err != nil || !bytes.Equal(msg, row.Msg) {
				t.Errorf("%s: DecryptOAEP(%s) = %q, %v; want %q", file, row.Algo, msg, err, row.Msg)
			}
		}
		for _, row := range v.PKCS1 {
			if sig, err := keys[row.Key].Sign(row.Algo, row.Data); err != nil || !bytes.Equal(sig, row.Sig) {
				t.Errorf("%s: Sign(%s) = %x, %v; want %x", file, row.Algo, sig, err, row.Sig)
			}
		}
	}
}

// TestSizes has the library and Go agree for keys of each size, also of one that is no whole number of bytes or words, and for
// messages of each length.
func TestSizes(t *testing.T) {
	for _, bits := range []int{1024, 1031, 2048, 3072, 4096} {
		m := newKey(t, bits)
		k := accelerated(t, m)
		for algo, h := range encryptions {
			for _, n := range []int{0, 1, 16, (bits+7)/8 - 2*h.Size() - 2} {
				msg := bytes.Repeat([]byte{'m'}, n)
				sealed, err := m.Public().EncryptOAEP(algo, msg)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := k.engine.decrypt(h, sealed); err != nil || !bytes.Equal(got, msg) {
					t.Errorf("%d bits, %s, %d bytes: %q, %v", bits, algo, n, got, err)
				}
			}
		}
		for algo, h := range signatures {
			want, err := m.Sign(algo, []byte("data"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := k.engine.sign(h, digest(h, []byte("data"))); k.able[algo] && (err != nil || !bytes.Equal(got, want)) {
				t.Errorf("%d bits, %s: %x, %v; want %x", bits, algo, got, err, want)
			}
		}
	}
}

// TestRefusals: what Go refuses is refused, with Go's error.
func TestRefusals(t *testing.T) {
	m := newKey(t, 2048)
	k := accelerated(t, m)
	sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("msg"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(sealed)
	flipped[100] ^= 1
	for name, ct := range map[string][]byte{
		"nothing": nil, "short": sealed[1:], "long": append([]byte{0}, sealed...), "flipped": flipped, "zeros": make([]byte, 256),
		"beyond the modulus": bytes.Repeat([]byte{0xff}, 256), "another hash's": sealed,
	} {
		algo := saltcrypt.OAEPSHA1
		if name == "another hash's" {
			algo = saltcrypt.OAEPSHA224
		}
		if got, err := k.engine.decrypt(encryptions[algo], ct); err == nil {
			t.Errorf("%s: OpenSSL opened it: %q", name, got)
		}
		if _, err := k.DecryptOAEP(algo, ct); !errors.Is(err, saltcrypt.ErrDecrypt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, algo := range []string{"", "OAEP-MD5", "PKCS1v15-SHA256"} {
		_, err1 := k.Sign(algo, nil)
		if _, err2 := k.DecryptOAEP(algo, sealed); !errors.Is(err1, saltcrypt.ErrAlgorithm) || !errors.Is(err2, saltcrypt.ErrAlgorithm) {
			t.Errorf("%q: %v, %v", algo, err1, err2)
		}
	}
	if _, err := load([]byte("no key")); !errors.Is(err, ErrUnfit) {
		t.Errorf("no key: %v", err)
	}
}

// TestConcurrent shares a key between goroutines, which move between threads, while other keys come and go.
func TestConcurrent(t *testing.T) {
	m := newKey(t, 1024)
	k := accelerated(t, m)
	want, err := m.Sign(saltcrypt.PKCS1v15SHA224, []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 100 {
				if got, err := k.Sign(saltcrypt.PKCS1v15SHA224, []byte("data")); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v", got, err)
					return
				}
				if _, err := k.DecryptOAEP(saltcrypt.OAEPSHA1, make([]byte, 128)); err == nil {
					t.Error("opened nothing")
				}
				if i%25 == 0 {
					if _, err := Accelerate(m); err != nil {
						t.Error(err)
					}
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

var errFake = errors.New("refused")

// fake is an engine that does what it is told.
type fake struct {
	sig, msg []byte
	err      error
}

func (f fake) sign(crypto.Hash, []byte) ([]byte, error)    { return f.sig, f.err }
func (f fake) decrypt(crypto.Hash, []byte) ([]byte, error) { return f.msg, f.err }
func (f fake) version() string                             { return "fake" }

// TestGoStays: whatever a library does not do, or does differently, Go does.
func TestGoStays(t *testing.T) {
	m := newKey(t, 1024)
	sig, err := m.Sign(saltcrypt.PKCS1v15SHA1, []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("msg"))
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]fake{"refuses": {err: errFake}, "wrong": {sig: []byte("x"), msg: []byte("x")}} {
		if _, err := tried(m, e); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: used all the same: %v", name, err)
		}
	}
	// One that opens but may not sign with any hash, and then opens no more.
	k, err := tried(m, fake{msg: []byte("the same as Go?")})
	if err != nil {
		t.Fatal(err)
	}
	if left := k.Left(); !slices.Equal(left, []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224}) {
		t.Errorf("left to Go: %v", left)
	}
	k.engine = fake{err: errFake}
	if got, err := k.Sign(saltcrypt.PKCS1v15SHA1, []byte("data")); err != nil || !bytes.Equal(got, sig) {
		t.Errorf("Sign: %x, %v", got, err)
	}
	if got, err := k.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); err != nil || string(got) != "msg" {
		t.Errorf("DecryptOAEP: %q, %v", got, err)
	}
}

func BenchmarkRSA2048(b *testing.B) {
	m := newKey(b, 2048)
	k := accelerated(b, m)
	sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("token"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.Sign(saltcrypt.PKCS1v15SHA1, sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("DecryptOAEP", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
