package saltcrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func testKey(t testing.TB, bits int) *MasterKey {
	t.Helper()
	m, err := GenerateMasterKey(bits)
	require.NoError(t, err)
	return m
}

func TestCrypticleRoundTrip(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	c := NewCrypticle(key)
	prefix := []byte("kept")
	for n := range 70 {
		want := bytes.Repeat([]byte{0x10}, n) // 0x10 looks like padding
		sealed := c.Seal(prefix, want, nil)
		if !bytes.HasPrefix(sealed, prefix) || len(sealed) > len(prefix)+n+Overhead {
			t.Fatalf("Seal of %d bytes: %d bytes", n, len(sealed))
		}
		got, err := c.Open(prefix, sealed[len(prefix):])
		if err != nil || string(got) != "kept"+string(want) {
			t.Fatalf("Open of %d bytes = %x, %v", n, got, err)
		}
	}
	sealed := c.Seal(nil, []byte{0xc0}, []byte("nonce"))
	if got, err := c.Open(nil, sealed); err != nil || string(got) != "nonce\xc0" {
		t.Errorf("with nonce: %q, %v", got, err)
	}
}

func TestCrypticleRefusesEveryChange(t *testing.T) {
	c := NewCrypticle(Key{1})
	sealed := c.Seal(nil, []byte("text"), nil)
	for i := range sealed {
		for _, bad := range [][]byte{sealed[:i], sealed[i+1:]} {
			if _, err := c.Open(nil, bad); !errors.Is(err, ErrAuthentication) {
				t.Fatalf("cut at %d: %v", i, err)
			}
		}
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := c.Open(nil, bad); !errors.Is(err, ErrAuthentication) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	if _, err := NewCrypticle(Key{40: 1}).Open(nil, sealed); !errors.Is(err, ErrAuthentication) {
		t.Errorf("other key: %v", err)
	}
}

// TestCrypticlePlaintext seals texts that a holder of the key, but not Salt, would make.
func TestCrypticlePlaintext(t *testing.T) {
	c := NewCrypticle(Key{1})
	for _, plain := range []string{
		strings.Repeat("\x10", 16),           // no "pickle::"
		"pickle::1234567\x00",                // padding 0
		"pickle::1234567\x11",                // padding beyond a block
		"pickle::1234567\x09",                // padding into "pickle::"
		"pickle::" + strings.Repeat("a", 24), // padding 0x61
		"PICKLE::" + strings.Repeat("\x08", 8),
	} {
		if got, err := c.Open([]byte("dst"), sealRaw(c, plain)); !errors.Is(err, ErrPlaintext) || string(got) != "dst" {
			t.Errorf("%q: %q, %v", plain, got, err)
		}
	}
	if got, err := c.Open(nil, sealRaw(c, "pickle::"+strings.Repeat("\x08", 8))); err != nil || len(got) != 0 {
		t.Errorf("empty: %q, %v", got, err)
	}
}

// sealRaw encrypts whole blocks as they are.
func sealRaw(c *Crypticle, blocks string) []byte {
	s := c.getState()
	out := append(make([]byte, ivSize), blocks...)
	s.cbcEncrypter(c.block).CryptBlocks(out[ivSize:], out[ivSize:])
	s.mac.Write(out)
	return s.mac.Sum(out)
}

func TestCrypticleAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	c := NewCrypticle(Key{1})
	plain, buf := make([]byte, 1024), make([]byte, 0, 2048)
	sealed := c.Seal(nil, plain, nil)
	if n := testing.AllocsPerRun(100, func() { buf = c.Seal(buf[:0], plain, nil) }); n > 0.5 {
		t.Errorf("Seal: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { buf, _ = c.Open(buf[:0], sealed) }); n > 0.5 {
		t.Errorf("Open: %v allocations", n)
	}
}

func TestCrypticleConcurrent(t *testing.T) {
	c := NewCrypticle(Key{1})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := bytes.Repeat([]byte{byte(i)}, 100+i%2*longText)
			for range 200 {
				if got, err := c.Open(nil, c.Seal(nil, want, nil)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// longText is longer than most messages.
const longText = 4 << 10

// TestCrypticleSealsLongTexts: behind what stands in dst already, as the standard library opens it.
func TestCrypticleSealsLongTexts(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	c := NewCrypticle(key)
	block, err := aes.NewCipher(key[:aesKeySize])
	require.NoError(t, err)
	nonce := strings.Repeat("n", 32)
	for _, n := range []int{longText - 100, longText - 64, longText, 64 << 10, 64<<10 + 7, 1 << 20} {
		text := make([]byte, n)
		_, _ = rand.Read(text)
		for _, room := range []int{0, n + Overhead + 100} {
			dst := append(make([]byte, 0, room), "before"...)
			out, ok := bytes.CutPrefix(c.Seal(dst, text, []byte(nonce)), []byte("before"))
			if !ok || len(out) != SealedLen(len(nonce)+n) {
				t.Fatalf("%d bytes: %d bytes sealed, %v", n, len(out), ok)
			}
			end := len(out) - macSize
			mac := hmac.New(sha256.New, key[aesKeySize:])
			mac.Write(out[:end])
			if !hmac.Equal(mac.Sum(nil), out[end:]) {
				t.Fatalf("%d bytes: another MAC", n)
			}
			plain := out[ivSize:end]
			cipher.NewCBCDecrypter(block, out[:ivSize]).CryptBlocks(plain, plain)
			if !bytes.Equal(plain[:len(plain)-int(plain[len(plain)-1])], append([]byte(pad+nonce), text...)) {
				t.Fatalf("%d bytes: another text", n)
			}
		}
	}
	if raceEnabled {
		return // it makes sync.Pool allocate
	}
	text, buf := make([]byte, 2*longText), make([]byte, 0, 2*longText+Overhead)
	if n := testing.AllocsPerRun(100, func() { buf = c.Seal(buf[:0], text, nil) }); n > 0.5 {
		t.Errorf("Seal: %v allocations", n)
	}
}

func TestParseKey(t *testing.T) {
	good := Key{1, 2, 3}.Text()
	for _, bad := range []string{"", good[:75], good + "=", good[:75] + "!", strings.Replace(good, "A", "\n", 1),
		strings.Repeat("A", 76)} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrKeyText) {
			t.Errorf("ParseKey(%q) = %v", bad, err)
		}
	}
	if k, err := ParseKey(good); err != nil || !k.Equal(Key{1, 2, 3}) || k.IsZero() {
		t.Errorf("good key: %v", err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	key, master := Key{7, 7, 7, 7}, testKey(t, 1024)
	secretDigits := master.key.D.String()[:20]
	for _, v := range []any{key, &key, master, NewCrypticle(key), struct{ K Key }{key}, struct{ M *MasterKey }{master}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
			out := fmt.Sprintf(verb, v)
			if strings.Contains(out, "7 7 7") || strings.Contains(out, "0707") || strings.Contains(out, "BwcH") ||
				strings.Contains(out, secretDigits) {
				t.Errorf("%T with %s prints %s", v, verb, out)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		if strings.Contains(log.String(), "7 7 7") || strings.Contains(log.String(), secretDigits) {
			t.Errorf("%T logs %s", v, log.String())
		}
	}
	if _, err := json.Marshal(key); err == nil {
		t.Error("a key marshals implicitly")
	}
}

func TestDeriveSession(t *testing.T) {
	seed := []byte("0123456789abcdef0123456789abcdef")
	base := DeriveSession(seed, "m1", "pub")
	check.Equal(t, DeriveSession(seed, "m1", " pub\n"), base, "the clean key is not what counts")
	for name, other := range map[string]Key{
		"id": DeriveSession(seed, "m2", "pub"), "pub": DeriveSession(seed, "m1", "pub2"),
		"seed": DeriveSession(seed[1:], "m1", "pub"),
	} {
		if other == base {
			t.Errorf("%s does not matter", name)
		}
	}
	// Fixed for ever: nodes of different releases must agree.
	if got := base.Text(); got != "YJKnL4fXpiLWbTJid6i6Vpxmw60h/7TvV2oU1HxvySs95mzGBRQBlIIYC0vGu3aeZtP7KxloB4o=" {
		t.Errorf("DeriveSession changed: %s", got)
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	good := testKey(t, 1024).PublicText()
	edPub, _, _ := ed25519.GenerateKey(rand.Reader)
	edDER, _ := x509.MarshalPKIXPublicKey(edPub)
	block, _ := pem.Decode([]byte(good))
	for name, text := range map[string]string{
		"empty": "", "text": "hello", "two": good + "\n" + good, "before": "x\n" + good, "after": good + "\nx",
		"header":      strings.Replace(good, "-----\n", "-----\nA: b\n\n", 1),
		"not rsa":     string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: edDER})),
		"other type":  string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})),
		"cut":         string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: block.Bytes[:100]})),
		"long":        good + strings.Repeat("\n", 5000),
		"private key": string(testKey(t, 1024).PEM()),
	} {
		if _, err := ParsePublicKey(text); !errors.Is(err, ErrPublicKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParsePublicKey("\r\n" + strings.ReplaceAll(good, "\n", "\r\n") + "\n\n"); err != nil {
		t.Errorf("line ends: %v", err)
	}
	for _, indent := range []string{" ", "    ", "\t"} {
		if _, err := ParsePublicKey(indent + strings.ReplaceAll(good, "\n", "\n"+indent)); err != nil {
			t.Errorf("indented by %q: %v", indent, err)
		}
	}
}

func TestParsePublicKeyBounds(t *testing.T) {
	n := testKey(t, 1024).key.N
	for name, key := range map[string]*rsa.PublicKey{
		"small":     {N: n.Rsh(n, 24), E: 65537},
		"even e":    {N: testKey(t, 1024).key.N, E: 65536},
		"e of 1":    {N: testKey(t, 1024).key.N, E: 1},
		"e too big": {N: testKey(t, 1024).key.N, E: 1<<31 + 1},
	} {
		text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(key)}))
		if _, err := ParsePublicKey(text); !errors.Is(err, ErrPublicKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPKCS1PublicKey(t *testing.T) {
	m := testKey(t, 1024)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY",
		Bytes: x509.MarshalPKCS1PublicKey(&m.key.PublicKey)}))
	p, err := ParsePublicKey(text)
	if err != nil || !p.Equal(m.Public()) || p.Text() != m.PublicText() || p.Bits() != 1024 {
		t.Errorf("PKCS#1 public key: %v", err)
	}
}

func TestParseMasterKey(t *testing.T) {
	m := testKey(t, 1024)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(m.key)
	require.NoError(t, err)
	if got, err := ParseMasterKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})); err != nil ||
		got.PublicText() != m.PublicText() {
		t.Errorf("PKCS#8: %v", err)
	}
	legacy := &pem.Block{Type: "RSA PRIVATE KEY",
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte{1}}
	for _, block := range []*pem.Block{legacy, {Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}} {
		if _, err := ParseMasterKey(pem.EncodeToMemory(block)); !errors.Is(err, ErrEncryptedKey) ||
			!strings.Contains(err.Error(), "key_pass") {
			t.Errorf("encrypted key: %v", err)
		}
	}
	for name, text := range map[string]string{"empty": "", "public": m.PublicText(),
		"garbage": "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"} {
		if _, err := ParseMasterKey([]byte(text)); !errors.Is(err, ErrPrivateKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestX931Sizes(t *testing.T) {
	m := testKey(t, 1032)
	for _, n := range []int{1, 4, 64, 125, 127} {
		msg := bytes.Repeat([]byte{'m'}, n)
		sig, err := m.SignX931(msg)
		require.NoError(t, err, n, "bytes")
		if got, err := m.Public().VerifyX931(sig); err != nil || !bytes.Equal(got, msg) {
			t.Errorf("%d bytes: %q, %v", n, got, err)
		}
		for _, bad := range [][]byte{nil, sig[1:], append([]byte{0}, sig...), bytes.Repeat([]byte{0xff}, len(sig)),
			make([]byte, len(sig))} {
			if _, err := m.Public().VerifyX931(bad); !errors.Is(err, ErrX931) {
				t.Errorf("bad signature of %d bytes: %v", len(bad), err)
			}
		}
	}
	if _, err := m.SignX931(make([]byte, 128)); !errors.Is(err, ErrX931) {
		t.Errorf("too long: %v", err)
	}
	if _, err := testKey(t, 1024).Public().VerifyX931(make([]byte, 128)); !errors.Is(err, ErrX931) {
		t.Errorf("zero: %v", err)
	}
}

func TestSignX931_Fault(t *testing.T) {
	m := testKey(t, 1024)
	m.x931.dp.Add(m.x931.dp, m.x931.e) // as a faulty multiplication would
	if sig, err := m.SignX931([]byte("salt")); err == nil {
		t.Errorf("a wrong result left: %x", sig)
	}
}

func TestRSAAlgorithms(t *testing.T) {
	m := testKey(t, 1024)
	for _, algo := range []string{OAEPSHA1, OAEPSHA224} {
		ct, err := m.Public().EncryptOAEP(algo, []byte("msg"))
		if err != nil || !ValidEncAlgo(algo) {
			t.Fatal(algo, err)
		}
		if got, err := m.DecryptOAEP(algo, ct); err != nil || string(got) != "msg" {
			t.Errorf("%s: %q, %v", algo, got, err)
		}
		// its first byte may be none of the number
		if _, err := m.DecryptOAEP(algo, ct[:len(ct)-1]); !errors.Is(err, ErrDecrypt) {
			t.Errorf("%s: %v", algo, err)
		}
		if _, err := m.Public().EncryptOAEP(algo, make([]byte, 200)); err == nil {
			t.Errorf("%s: a message beyond the key's size", algo)
		}
	}
	for _, algo := range []string{PKCS1v15SHA1, PKCS1v15SHA224} {
		sig, err := m.Sign(algo, []byte("data"))
		if err != nil || !ValidSigAlgo(algo) {
			t.Fatal(algo, err)
		}
		check.ErrorIs(t, m.Public().Verify(algo, []byte("other"), sig), ErrSignature, algo)
	}
	for _, algo := range []string{"", "oaep-sha1", "OAEP-MD5", "PKCS1v15-SHA256"} {
		_, err1 := m.Sign(algo, nil)
		_, err2 := m.DecryptOAEP(algo, nil)
		_, err3 := m.Public().EncryptOAEP(algo, nil)
		if err4 := m.Public().Verify(algo, nil, nil); ValidEncAlgo(algo) || ValidSigAlgo(algo) ||
			!errors.Is(err1, ErrAlgorithm) || !errors.Is(err2, ErrAlgorithm) || !errors.Is(err3, ErrAlgorithm) ||
			!errors.Is(err4, ErrAlgorithm) {
			t.Errorf("%q: %v %v %v %v", algo, err1, err2, err3, err4)
		}
	}
	check.ErrorIs(t, m.Public().VerifyPubSig(PKCS1v15SHA1, "text", "not base64!"), ErrSignature, "pub_sig")
}
