package libcrypto

import (
	"bytes"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

func newKey(t testing.TB, bits int) *saltcrypt.MasterKey {
	t.Helper()
	m, err := saltcrypt.GenerateMasterKey(bits)
	require.NoError(t, err)
	return m
}

// accelerated skips on hosts without the library.
func accelerated(t testing.TB, m *saltcrypt.MasterKey) *Key {
	t.Helper()
	k, err := Accelerate(m)
	if err != nil {
		t.Skip(err)
	}
	return k
}

func TestLoad(t *testing.T) {
	if err := Load(); err != nil {
		check.ErrorIs(t, err, ErrUnavailable)
		t.Skip(err)
	}
}

// TestUsable refuses versions whose functions are others, or that are dangerous.
func TestUsable(t *testing.T) {
	for version, want := range map[uint]bool{
		0x10101170: false, 0x30000000: true, 0x30000030: true, 0x30000040: false, 0x30000050: true, 0x30000130: true,
		0x30400040: true, 0x30500000: true, 0x40000000: false,
	} {
		if usable(version) != want {
			t.Errorf("%#x: %t", version, !want)
		}
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
			require.NoError(t, err)
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

// TestSizes compares the library with crypto/rsa for keys of each size, one of them no whole number of bytes, and for
// messages of each length.
func TestSizes(t *testing.T) {
	for _, bits := range []int{1024, 1031, 2048, 3072, 4096} {
		m := newKey(t, bits)
		k := accelerated(t, m)
		for algo, h := range encryptions {
			for _, n := range []int{0, 1, 16, (bits+7)/8 - 2*h.Size() - 2} {
				msg := bytes.Repeat([]byte{'m'}, n)
				sealed, err := m.Public().EncryptOAEP(algo, msg)
				require.NoError(t, err)
				if got, err := k.engine.decrypt(h, sealed); err != nil || !bytes.Equal(got, msg) {
					t.Errorf("%d bits, %s, %d bytes: %q, %v", bits, algo, n, got, err)
				}
			}
		}
		for algo, h := range signatures {
			want, err := m.Sign(algo, []byte("data"))
			require.NoError(t, err)
			if got, err := k.engine.sign(h, digest(h, []byte("data"))); k.able[algo] && (err != nil || !bytes.Equal(got, want)) {
				t.Errorf("%d bits, %s: %x, %v; want %x", bits, algo, got, err, want)
			}
		}
	}
}

// TestRefusals expects the errors of crypto/rsa for whatever does not decrypt.
func TestRefusals(t *testing.T) {
	m := newKey(t, 2048)
	k := accelerated(t, m)
	sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("msg"))
	require.NoError(t, err)
	flipped := bytes.Clone(sealed)
	flipped[100] ^= 1
	for name, ct := range map[string][]byte{
		"nothing": nil, "short": sealed[1:], "long": append([]byte{0}, sealed...), "flipped": flipped,
		"zeros":              make([]byte, 256),
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
		if _, err2 := k.DecryptOAEP(algo, sealed); !errors.Is(err1, saltcrypt.ErrAlgorithm) ||
			!errors.Is(err2, saltcrypt.ErrAlgorithm) {
			t.Errorf("%q: %v, %v", algo, err1, err2)
		}
	}
}

// TestConcurrent shares a key between goroutines, which move between threads, while other keys come and go.
func TestConcurrent(t *testing.T) {
	m := newKey(t, 1024)
	k := accelerated(t, m)
	want, err := m.Sign(saltcrypt.PKCS1v15SHA224, []byte("data"))
	require.NoError(t, err)
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

// fake is an engine with fixed results.
type fake struct {
	sig, msg []byte
	err      error
}

func (f fake) sign(crypto.Hash, []byte) ([]byte, error)    { return f.sig, f.err }
func (f fake) decrypt(crypto.Hash, []byte) ([]byte, error) { return f.msg, f.err }
func (f fake) version() string                             { return "fake" }

// TestFallback has Go do whatever a library refuses or does differently.
func TestFallback(t *testing.T) {
	m := newKey(t, 1024)
	sig, err := m.Sign(saltcrypt.PKCS1v15SHA1, []byte("data"))
	require.NoError(t, err)
	sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("msg"))
	require.NoError(t, err)
	for name, e := range map[string]fake{"refuses": {err: errFake}, "wrong": {sig: []byte("x"), msg: []byte("x")}} {
		if _, err := compare(m, e); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: used all the same: %v", name, err)
		}
	}
	// An engine that decrypts but may not sign, and later decrypts no longer.
	k, err := compare(m, fake{msg: []byte("the same as Go?")})
	require.NoError(t, err)
	check.EqualSlices(t, k.Left(), []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224}, "left to Go")
	k.engine = fake{err: errFake}
	if got, err := k.Sign(saltcrypt.PKCS1v15SHA1, []byte("data")); err != nil || !bytes.Equal(got, sig) {
		t.Errorf("Sign: %x, %v", got, err)
	}
	if got, err := k.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); err != nil || string(got) != "msg" {
		t.Errorf("DecryptOAEP: %q, %v", got, err)
	}
}

// TestFaults discards a signature that is wrong, whatever the reason: it would give the factors of the key away.
func TestFaults(t *testing.T) {
	m := newKey(t, 2048)
	sig, err := m.Sign(saltcrypt.PKCS1v15SHA1, []byte("data"))
	require.NoError(t, err)
	wrong := bytes.Clone(sig)
	wrong[17] ^= 1
	k := &Key{MasterKey: m, engine: fake{sig: wrong}, able: map[string]bool{saltcrypt.PKCS1v15SHA1: true}}
	for n := range uint64(3) {
		got, err := k.Sign(saltcrypt.PKCS1v15SHA1, []byte("data"))
		if err != nil || !bytes.Equal(got, sig) || k.Faults() != n+1 {
			t.Errorf("%x, %v, %d faults", got, err, k.Faults())
		}
	}
}

// BenchmarkRSA measures one private operation of each backend. CPU time is what counts on a busy machine.
func BenchmarkRSA(b *testing.B) {
	for _, bits := range []int{2048, 3072, 4096} {
		m := newKey(b, bits)
		k := accelerated(b, m)
		sealed, err := m.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("token"))
		require.NoError(b, err)
		for _, backend := range []struct {
			name string
			key  interface {
				Sign(algo string, data []byte) ([]byte, error)
				DecryptOAEP(algo string, ct []byte) ([]byte, error)
			}
		}{{"libcrypto", k}, {"go", m}} {
			b.Run(fmt.Sprint("Sign/", bits, "/", backend.name), func(b *testing.B) {
				measure(b, func() error { _, err := backend.key.Sign(saltcrypt.PKCS1v15SHA1, sealed); return err })
			})
			b.Run(fmt.Sprint("DecryptOAEP/", bits, "/", backend.name), func(b *testing.B) {
				measure(b, func() error { _, err := backend.key.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); return err })
			})
		}
	}
}

func measure(b *testing.B, operation func() error) {
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		require.NoError(b, operation())
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what this process has used, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}
