package saltcrypt

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"math/big"
	"testing"
)

// slow is a key without the accelerated operation.
func (p *PublicKey) slow() *PublicKey {
	other := *p
	other.fast = nil
	return &other
}

// fastPublicKey is one of 2048 bits; if small is set, a third at least of the numbers below its modulus are another one of 2048 bits when that is added.
func fastPublicKey(tb testing.TB, small bool) *MasterKey {
	tb.Helper()
	for {
		m := testKey(tb, 2048)
		if m.pub.fast == nil {
			tb.Skip("this processor does it in Go's way")
		}
		if !small || m.key.N.Bit(2046) == 0 {
			return m
		}
	}
}

var everyHash = []crypto.Hash{crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512}

// TestEncryptOAEPIsCryptoRSAs: what is sealed opens there, of each length, and what is too long is refused with the same words.
func TestEncryptOAEPIsCryptoRSAs(t *testing.T) {
	m := fastPublicKey(t, false)
	for _, h := range everyHash {
		for _, label := range [][]byte{nil, []byte("identity")} {
			longest := 256 - 2*h.Size() - 2
			for _, size := range []int{0, 1, 2, 24, 76, longest - 1, longest} {
				msg := make([]byte, size)
				_, _ = rand.Read(msg)
				ct, err := m.pub.encryptOAEP(h, msg, label)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := rsa.DecryptOAEP(h.New(), nil, m.key, ct, label); err != nil || !bytes.Equal(got, msg) {
					t.Errorf("%v, label %q: %d bytes sealed, %d opened, %v", h, label, size, len(got), err)
				}
				if again, err := m.pub.encryptOAEP(h, msg, label); err != nil || bytes.Equal(again, ct) {
					t.Errorf("%v: sealed the same way twice, %v", h, err)
				}
			}
			for _, size := range []int{longest + 1, 256, 1000} {
				fast, err := m.pub.encryptOAEP(h, make([]byte, size), label)
				_, want := m.pub.slow().encryptOAEP(h, make([]byte, size), label)
				if fast != nil || !errors.Is(err, rsa.ErrMessageTooLong) || fmt.Sprint(err) != fmt.Sprint(want) {
					t.Errorf("%v: %d bytes: %v, want %v", h, size, err, want)
				}
			}
		}
	}
	for _, algo := range []string{OAEPSHA1, OAEPSHA224} {
		_, fast := m.pub.EncryptOAEP(algo, make([]byte, 256))
		_, slow := m.pub.slow().EncryptOAEP(algo, make([]byte, 256))
		if !errors.Is(fast, rsa.ErrMessageTooLong) || fast.Error() != slow.Error() {
			t.Errorf("%s: %v, want %v", algo, fast, slow)
		}
		ct, err := m.pub.slow().EncryptOAEP(algo, []byte("salt"))
		if got, err2 := m.DecryptOAEP(algo, ct); err != nil || err2 != nil || string(got) != "salt" {
			t.Errorf("%s in Go's way: %q, %v, %v", algo, got, err, err2)
		}
	}
}

// TestPadOAEP has the first byte nought, without which a number may be none modulo the key, and as much as fits.
func TestPadOAEP(t *testing.T) {
	for _, h := range everyHash {
		for size := range maxOAEP(h, 256) + 1 {
			msg := bytes.Repeat([]byte{1}, size)
			em := padOAEP(h, msg, nil, 256)
			if len(em) != 256 || em[0] != 0 {
				t.Fatalf("%v, %d bytes: %x", h, size, em)
			}
			if got, err := unpadOAEP(h, em); err != nil || !bytes.Equal(got, msg) {
				t.Fatalf("%v, %d bytes: %x, %v", h, size, got, err)
			}
		}
	}
	if maxOAEP(crypto.SHA512, 128) >= 0 {
		t.Error("two digests of 64 bytes fit into 128")
	}
}

// compareVerify holds Verify and VerifyX931 against crypto/rsa and math/big, and says whether the former took it.
func compareVerify(tb testing.TB, p *PublicKey, data, sig []byte) (verifies bool) {
	tb.Helper()
	for _, algo := range []string{PKCS1v15SHA1, PKCS1v15SHA224} {
		h, _ := sigHash(algo)
		want := rsa.VerifyPKCS1v15(p.key, h, digest(h, data), sig)
		got := p.Verify(algo, data, sig)
		if (got == nil) != (want == nil) || got != nil && !errors.Is(got, ErrSignature) {
			tb.Fatalf("%s: %x of %q: %v; crypto/rsa says %v", algo, sig, data, got, want)
		}
		verifies = verifies || got == nil
	}
	fast, err1 := p.VerifyX931(sig)
	slow, err2 := p.slow().VerifyX931(sig)
	if !bytes.Equal(fast, slow) || !errors.Is(err1, err2) {
		tb.Fatalf("X9.31: %x: %q, %v; in Go's way %q, %v", sig, fast, err1, slow, err2)
	}
	return verifies
}

func TestVerifyIsCryptoRSAs(t *testing.T) {
	m := fastPublicKey(t, true)
	var data []byte
	for _, algo := range []string{PKCS1v15SHA1, PKCS1v15SHA224} {
		var sig, twin []byte // the latter is the same modulo the key
		for i := 0; twin == nil; i++ {
			var err error
			data = fmt.Append(nil, "what is signed ", i)
			if sig, err = m.Sign(algo, data); err != nil {
				t.Fatal(err)
			}
			if more := new(big.Int).SetBytes(sig); more.Add(more, m.key.N).BitLen() <= 2048 {
				twin = more.Bytes()
			}
		}
		if !compareVerify(t, m.pub, data, sig) {
			t.Fatalf("%s: a good one is refused", algo)
		}
		number := new(big.Int).SetBytes(sig)
		wrong := map[string][]byte{
			"nothing": {}, "cut off": sig[:255], "longer": append(bytes.Clone(sig), 0), "longer before": append([]byte{0}, sig...),
			"first cut off": sig[1:], "nought": make([]byte, 256), "all ones": bytes.Repeat([]byte{0xff}, 256),
			"the modulus": m.key.N.Bytes(), "one less": new(big.Int).Sub(m.key.N, big.NewInt(1)).Bytes(), "its opposite": new(big.Int).Sub(m.key.N, number).FillBytes(make([]byte, 256)),
			"as much modulo the key": twin,
		}
		for i := range 256 {
			changed := bytes.Clone(sig)
			changed[i] ^= 1 << (i % 8)
			wrong[fmt.Sprint("byte ", i)] = changed
		}
		for what, sig := range wrong {
			if compareVerify(t, m.pub, data, sig) {
				t.Errorf("%s: %s is taken", algo, what)
			}
		}
		if compareVerify(t, m.pub, []byte("what is not signed"), sig) {
			t.Errorf("%s: another text is taken", algo)
		}
	}
	// What a signer without scruples may make: each byte of the encoding another, or the digest further left, with something behind it.
	h := crypto.SHA1
	good := padPKCS1(h, digest(h, data), 256)
	for i := range good {
		em := bytes.Clone(good)
		em[i] ^= 0x10
		if i == 0 {
			em[i] = 0x01 // else it is none modulo the key
		}
		if compareVerify(t, m.pub, data, m.open(t, em)) {
			t.Errorf("an encoding whose byte %d is another is taken", i)
		}
	}
	left := append(append([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, good[256-36:]...), make([]byte, 210)...)
	left = append(left, good...)[:256]
	if compareVerify(t, m.pub, data, m.open(t, left)) {
		t.Error("something behind the digest is taken")
	}
	if !compareVerify(t, m.pub, data, m.open(t, good)) {
		t.Error("the encoding itself is not taken")
	}
}

// FuzzVerify asks for signatures as they come, and for such of what comes as an encoding, which gets as far as to be compared.
func FuzzVerify(f *testing.F) {
	m := fastPublicKey(f, false)
	data := []byte("salt")
	for _, h := range []crypto.Hash{crypto.SHA1, crypto.SHA224} {
		f.Add(padPKCS1(h, digest(h, data), 256), true)
	}
	sig, err := m.Sign(PKCS1v15SHA1, data)
	if err != nil {
		f.Fatal(err)
	}
	tok, err := m.SignX931(data)
	if err != nil {
		f.Fatal(err)
	}
	em, ok := padX931(data, 256)
	if !ok {
		f.Fatal("no padding")
	}
	f.Add(sig, false)
	f.Add(tok, false)
	f.Add(em, true)
	f.Add(m.key.N.Bytes(), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, number []byte, open bool) {
		if open {
			if len(number) != 256 || new(big.Int).SetBytes(number).Cmp(m.key.N) >= 0 {
				return
			}
			number = m.open(t, number)
		}
		compareVerify(t, m.pub, data, number)
	})
}

// FuzzEncryptOAEP holds it against what crypto/rsa opens, for whatever message and label.
func FuzzEncryptOAEP(f *testing.F) {
	m := fastPublicKey(f, false)
	f.Add([]byte("token"), []byte{}, byte(0))
	f.Add(make([]byte, 214), []byte("identity"), byte(0))
	f.Add(make([]byte, 215), []byte("identity"), byte(0))
	f.Fuzz(func(t *testing.T, msg, label []byte, which byte) {
		h := everyHash[int(which)%len(everyHash)]
		ct, err := m.pub.encryptOAEP(h, msg, label)
		if len(msg) > maxOAEP(h, 256) {
			if !errors.Is(err, rsa.ErrMessageTooLong) {
				t.Fatalf("%d bytes: %v", len(msg), err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rsa.DecryptOAEP(h.New(), nil, m.key, ct, label); err != nil || !bytes.Equal(got, msg) {
			t.Fatalf("%x was sealed, %x opened, %v", msg, got, err)
		}
	})
}

// TestPublicKeysAreAcceptedAsBefore, whether there is an accelerated operation for them or not: an odd modulus is all that is asked.
func TestPublicKeysAreAcceptedAsBefore(t *testing.T) {
	one := big.NewInt(1)
	for _, bits := range []uint{1024, 1536, 2047, 2048, 2049, 3072, 4096, 8192} {
		n := new(big.Int).Sub(new(big.Int).Lsh(one, bits), big.NewInt(159))
		for _, e := range []int{3, 17, 65537, 1<<31 - 1} {
			p, err := newPublicKey(&rsa.PublicKey{N: n, E: e})
			if err != nil {
				t.Fatalf("%d bits, %d: %v", bits, e, err)
			}
			if p.fast != nil && bits != 2048 {
				t.Errorf("%d bits: an accelerated operation", bits)
			}
			ct, err := p.EncryptOAEP(OAEPSHA1, []byte("x"))
			if err != nil || len(ct) != p.key.Size() {
				t.Errorf("%d bits, %d: %d bytes, %v", bits, e, len(ct), err)
			}
			if err := p.Verify(PKCS1v15SHA1, nil, ct); !errors.Is(err, ErrSignature) {
				t.Errorf("%d bits, %d: %v", bits, e, err)
			}
		}
	}
}
