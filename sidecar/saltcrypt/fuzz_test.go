package saltcrypt

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
)

func FuzzCrypticleOpen(f *testing.F) {
	c := NewCrypticle(Key{1})
	f.Add(c.Seal(nil, []byte("plain"), nil))
	f.Add(make([]byte, 64))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := c.Open(nil, data); err == nil && len(data) < 64 {
			t.Fatal("opened something too short to be sealed")
		}
		// The inside must hold for whatever a holder of the key encrypts.
		blocks := append(bytes.Clone(data), make([]byte, (16-len(data)%16)%16)...)
		if len(blocks) > 0 {
			_, _ = c.Open(nil, sealRaw(c, string(blocks)))
			_, _ = c.Open(nil, sealRaw(c, "pickle::12345678"+string(blocks)))
		}
		if got, err := c.Open(nil, c.Seal(nil, data, nil)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("round trip: %x, %v", got, err)
		}
	})
}

func FuzzParsePublicKey(f *testing.F) {
	m, err := GenerateMasterKey(1024)
	require.NoError(f, err)
	f.Add(m.PublicText())
	f.Add(string(m.PEM()))
	f.Add("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePublicKey(text)
		if err != nil {
			return
		}
		if again, err := ParsePublicKey(p.Text()); err != nil || !again.Equal(p) {
			t.Fatalf("its own text does not parse: %v", err)
		}
		_, _ = p.VerifyX931(make([]byte, p.Bits()/8))
		if _, err := p.EncryptOAEP(OAEPSHA1, []byte("x")); err != nil {
			t.Fatalf("an accepted key does not encrypt: %v", err)
		}
	})
}

func FuzzParseMasterKey(f *testing.F) {
	m, err := GenerateMasterKey(1024)
	require.NoError(f, err)
	f.Add(m.PEM())
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := ParseMasterKey(text); err == nil {
			if _, err := m.Sign(PKCS1v15SHA1, nil); err != nil {
				t.Fatalf("an accepted key does not sign: %v", err)
			}
		}
	})
}

func FuzzVerifyX931(f *testing.F) {
	m, err := GenerateMasterKey(1024)
	require.NoError(f, err)
	tok, err := m.SignX931([]byte("salt"))
	require.NoError(f, err)
	f.Add(tok)
	f.Fuzz(func(t *testing.T, sig []byte) {
		if msg, err := m.Public().VerifyX931(sig); err == nil && len(msg) > 126 {
			t.Fatalf("a message of %d bytes", len(msg))
		}
		em := append(bytes.Clone(sig), 0xcc)
		_, _ = unpadX931(append(em, em...))
	})
}

// FuzzParseKey reads the text of a key as session files and sign-in replies have it.
func FuzzParseKey(f *testing.F) {
	f.Add(Key{1}.Text())
	f.Add(Key{}.Text()[:75] + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseKey(text); err == nil && k.Text() != text {
			t.Fatalf("%q is %q again", text, k.Text())
		}
	})
}

// FuzzVerifyPubSig: nobody but the master's signing key vouches for its public key.
func FuzzVerifyPubSig(f *testing.F) {
	m, err := GenerateMasterKey(1024)
	require.NoError(f, err)
	f.Add(PKCS1v15SHA1, "text", "c2ln")
	f.Add("OAEP-SHA1", "", "=")
	f.Fuzz(func(t *testing.T, algo, text, sig string) {
		if m.Public().VerifyPubSig(algo, text, sig) == nil {
			t.Fatal("a signature that nobody has made is good")
		}
	})
}
