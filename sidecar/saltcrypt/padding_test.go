package saltcrypt

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"strconv"
	"testing"
)

// slow is a key without the accelerated operation.
func (m *MasterKey) slow() *MasterKey {
	other := *m
	other.fast = nil
	return &other
}

func TestFastIsWhatGoMakes(t *testing.T) {
	for _, bits := range []int{2048, 3072, 4096} {
		t.Run(strconv.Itoa(bits), func(t *testing.T) { testFastIsWhatGoMakes(t, bits) })
	}
}

func testFastIsWhatGoMakes(t *testing.T, bits int) {
	m, err := GenerateMasterKey(bits)
	if err != nil {
		t.Fatal(err)
	}
	if m.fast == nil {
		t.Skip("this processor does it in Go's way")
	}
	for _, data := range [][]byte{nil, []byte("salt"), bytes.Repeat([]byte("x"), 10_000)} {
		for _, algo := range []string{PKCS1v15SHA1, PKCS1v15SHA224} {
			fast, err1 := m.Sign(algo, data)
			slow, err2 := m.slow().Sign(algo, data)
			if err1 != nil || err2 != nil || !bytes.Equal(fast, slow) {
				t.Errorf("%s of %d bytes: %v, %v, or another signature", algo, len(data), err1, err2)
			}
		}
	}
	for _, size := range []int{0, 1, 24, 76, bits/8 - 66} {
		msg := bytes.Repeat([]byte{1}, size)
		for _, algo := range []string{OAEPSHA1, OAEPSHA224} {
			ct, err := m.Public().EncryptOAEP(algo, msg)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.DecryptOAEP(algo, ct); err != nil || !bytes.Equal(got, msg) {
				t.Errorf("%s of %d bytes: %x, %v", algo, size, got, err)
			}
		}
	}
	for _, msg := range []string{"salt", ""} {
		fast, err1 := m.SignX931([]byte(msg))
		slow, err2 := m.slow().SignX931([]byte(msg))
		if err1 != nil || err2 != nil || !bytes.Equal(fast, slow) {
			t.Errorf("X9.31 of %q: %v, %v, or another signature", msg, err1, err2)
		}
	}
}

// Each thing that can be wrong with a padding, made with the public key as a stranger can.
func TestUnpadOAEP(t *testing.T) {
	m, err := GenerateMasterKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	const size = 256
	h := crypto.SHA1
	pad := func(change func(em, db []byte)) []byte {
		em := make([]byte, size)
		seed, db := em[1:1+h.Size()], em[1+h.Size():]
		_, _ = rand.Read(seed)
		copy(db, h.New().Sum(nil))
		copy(db[len(db)-5:], "\x01salt")
		change(em, db)
		maskMGF1(db, h, seed)
		maskMGF1(seed, h, db)
		return em
	}
	for name, c := range map[string]struct {
		change func(em, db []byte)
		want   string
	}{
		"good":              {func(_, _ []byte) {}, "salt"},
		"nothing in it":     {func(_, db []byte) { copy(db[len(db)-5:], "\x00\x00\x00\x00\x01") }, ""},
		"as much as fits":   {func(_, db []byte) { db[h.Size()] = 1 }, ""},
		"ones in it":        {func(_, db []byte) { copy(db[len(db)-5:], "\x01\x01\x00\x01x") }, "\x01\x00\x01x"},
		"another first one": {func(em, _ []byte) { em[0] = 1 }, "!"},
		"another label":     {func(_, db []byte) { db[3] ^= 1 }, "!"},
		"no one":            {func(_, db []byte) { clear(db[h.Size():]) }, "!"},
		"a two before":      {func(_, db []byte) { db[h.Size()+7] = 2 }, "!"},
		"a two instead":     {func(_, db []byte) { db[len(db)-5] = 2 }, "!"},
	} {
		em := pad(c.change)
		got, err := unpadOAEP(h, bytes.Clone(em))
		theirs, theirErr := []byte(nil), error(nil)
		if em[0] == 0 { // else it may be no number modulo the key
			sealed := encryptRaw(m, em)
			theirs, theirErr = rsa.DecryptOAEP(h.New(), nil, m.key, sealed, nil)
			if (theirErr == nil) != (err == nil) || !bytes.Equal(theirs, got) {
				t.Errorf("%s: %q, %v; crypto/rsa says %q, %v", name, got, err, theirs, theirErr)
			}
		}
		switch {
		case c.want == "!" && !errors.Is(err, ErrDecrypt):
			t.Errorf("%s: %q, %v", name, got, err)
		case c.want != "!" && c.want != "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := unpadOAEP(h, make([]byte, 2*h.Size()+1)); !errors.Is(err, ErrDecrypt) {
		t.Error(err)
	}
}

func encryptRaw(m *MasterKey, em []byte) []byte {
	x := new(big.Int).SetBytes(em)
	return x.Exp(x, new(big.Int).SetInt64(int64(m.key.E)), m.key.N).FillBytes(make([]byte, len(em)))
}

// FuzzUnpadOAEP holds it against crypto/rsa for whatever a private operation may give.
func FuzzUnpadOAEP(f *testing.F) {
	m, err := GenerateMasterKey(2048)
	if err != nil {
		f.Fatal(err)
	}
	for _, algo := range []string{OAEPSHA1, OAEPSHA224} {
		ct, err := m.Public().EncryptOAEP(algo, []byte("token"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.open(f, ct), algo == OAEPSHA1)
	}
	f.Fuzz(func(t *testing.T, em []byte, sha1 bool) {
		if len(em) != 256 || new(big.Int).SetBytes(em).Cmp(m.key.N) >= 0 {
			return
		}
		h := crypto.SHA224
		if sha1 {
			h = crypto.SHA1
		}
		theirs, theirErr := rsa.DecryptOAEP(h.New(), nil, m.key, encryptRaw(m, em), nil)
		got, err := unpadOAEP(h, em)
		if (err == nil) != (theirErr == nil) || !bytes.Equal(got, theirs) {
			t.Fatalf("%x, %v; crypto/rsa says %x, %v", got, err, theirs, theirErr)
		}
	})
}

// open is the bare private operation.
func (m *MasterKey) open(tb testing.TB, ct []byte) []byte {
	tb.Helper()
	s, err := m.x931.private(new(big.Int).SetBytes(ct))
	if err != nil {
		tb.Fatal(err)
	}
	return s.FillBytes(make([]byte, len(ct)))
}
