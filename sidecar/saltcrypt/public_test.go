package saltcrypt

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// TestVerify_Hostile offers signatures that are not the one signature of a text, some of them made with the private
// key.
func TestVerify_Hostile(t *testing.T) {
	m := testKey(t, 2048)
	data := []byte("salt")
	sig, err := m.Sign(PKCS1v15SHA1, data)
	require.NoError(t, err)
	number := new(big.Int).SetBytes(sig)
	hostile := map[string][]byte{
		"empty": {}, "truncated": sig[:255], "one byte more": append(bytes.Clone(sig), 0),
		"leading zero":       append([]byte{0}, sig...),
		"first byte missing": sig[1:], "zero": make([]byte, 256), "all ones": bytes.Repeat([]byte{0xff}, 256),
		"modulus": m.key.N.Bytes(), "modulus - 1": new(big.Int).Sub(m.key.N, big.NewInt(1)).Bytes(),
		"negated":         new(big.Int).Sub(m.key.N, number).FillBytes(make([]byte, 256)),
		"another hash":    sign(t, m, PKCS1v15SHA224, data),
		"another padding": signX931(t, m, data),
	}
	for i := range sig {
		changed := bytes.Clone(sig)
		changed[i] ^= 1 << (i % 8)
		hostile[fmt.Sprint("changed byte ", i)] = changed
	}
	encoded := number.Exp(number, m.pub.e, m.key.N).FillBytes(make([]byte, 256))
	for i := range encoded[:len(encoded)-20] { // the padding and the name of the hash
		changed := bytes.Clone(encoded)
		if changed[i] ^= 0x10; i == 0 {
			changed[i] = 1 // stay below the modulus
		}
		hostile[fmt.Sprint("encoding with another byte ", i)] = private(t, m, changed)
	}
	// The digest further left, with bytes behind it, as Bleichenbacher's forgery of 2006 has it.
	left := append([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, encoded[256-36:]...)
	hostile["bytes behind the digest"] = private(t, m, append(left, make([]byte, 256-len(left))...))
	for name, sig := range hostile {
		check.ErrorIs(t, m.pub.Verify(PKCS1v15SHA1, data, sig), ErrSignature, name)
		if msg, err := m.pub.VerifyX931(sig); name != "another padding" && !errors.Is(err, ErrX931) {
			t.Errorf("%s: X9.31 of %q, %v", name, msg, err)
		}
	}
	check.ErrorIs(t, m.pub.Verify(PKCS1v15SHA1, []byte("pepper"), sig), ErrSignature, "another text")
	check.NoError(t, m.pub.Verify(PKCS1v15SHA1, data, private(t, m, encoded)), "the signature itself")
}

func sign(t *testing.T, m *MasterKey, algo string, data []byte) []byte {
	t.Helper()
	sig, err := m.Sign(algo, data)
	require.NoError(t, err)
	return sig
}

func signX931(t *testing.T, m *MasterKey, data []byte) []byte {
	t.Helper()
	sig, err := m.SignX931(data)
	require.NoError(t, err)
	return sig
}

// private is the bare private operation on an encoding.
func private(t *testing.T, m *MasterKey, encoded []byte) []byte {
	t.Helper()
	s, err := m.x931.privateExp(new(big.Int).SetBytes(encoded))
	require.NoError(t, err)
	return s.FillBytes(make([]byte, len(encoded)))
}

// TestPublicKey_Sizes takes keys of each length and exponent that OpenSSL takes.
func TestPublicKey_Sizes(t *testing.T) {
	one := big.NewInt(1)
	for _, bits := range []uint{1024, 1536, 2047, 2048, 2049, 3072, 4096, 8192} {
		n := new(big.Int).Sub(new(big.Int).Lsh(one, bits), big.NewInt(159))
		for _, e := range []int{3, 17, 65537, 1<<31 - 1} {
			p, err := newPublicKey(&rsa.PublicKey{N: n, E: e})
			require.NoError(t, err, bits, "bits", e)
			ct, err := p.EncryptOAEP(OAEPSHA1, []byte("x"))
			if err != nil || len(ct) != p.key.Size() {
				t.Errorf("%d bits, %d: %d bytes, %v", bits, e, len(ct), err)
			}
			check.ErrorIs(t, p.Verify(PKCS1v15SHA1, nil, ct), ErrSignature, bits, "bits", e)
		}
	}
}
