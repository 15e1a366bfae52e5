package saltcrypt

import (
	"bytes"
	"testing"
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
	if err != nil {
		f.Fatal(err)
	}
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
	if err != nil {
		f.Fatal(err)
	}
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
	if err != nil {
		f.Fatal(err)
	}
	tok, err := m.SignX931([]byte("salt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tok)
	f.Fuzz(func(t *testing.T, sig []byte) {
		if msg, err := m.Public().VerifyX931(sig); err == nil && len(msg) > 126 {
			t.Fatalf("a message of %d bytes", len(msg))
		}
		em := append(bytes.Clone(sig), 0xcc)
		_, _ = unpadX931(append(em, em...))
	})
}
