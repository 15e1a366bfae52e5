package saltcrypt

import (
	"bytes"
	"fmt"
	"testing"

	"saltclusterd/integration/require"
)

func BenchmarkCrypticle(b *testing.B) {
	k, err := NewKey()
	require.NoError(b, err)
	c := NewCrypticle(k)
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		plain := bytes.Repeat([]byte{0x81}, size)
		sealed := c.Seal(nil, plain, nil)
		buf := make([]byte, 0, len(sealed)+Overhead)
		b.Run(fmt.Sprintf("Seal/%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				buf = c.Seal(buf[:0], plain, nil)
			}
		})
		b.Run(fmt.Sprintf("Open/%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Open(buf[:0], sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRSA2048(b *testing.B) {
	m, err := GenerateMasterKey(2048)
	require.NoError(b, err)
	msg := []byte(Key{1}.Text())
	ct, err := m.Public().EncryptOAEP(OAEPSHA1, msg)
	require.NoError(b, err)
	tok, err := m.SignX931([]byte("salt"))
	require.NoError(b, err)
	sig, err := m.Sign(PKCS1v15SHA1, msg)
	require.NoError(b, err)
	text := m.PublicText()
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"Sign", func() error { _, err := m.Sign(PKCS1v15SHA1, msg); return err }},
		{"DecryptOAEP", func() error { _, err := m.DecryptOAEP(OAEPSHA1, ct); return err }},
		{"EncryptOAEP", func() error { _, err := m.Public().EncryptOAEP(OAEPSHA1, msg); return err }},
		{"Verify", func() error { return m.Public().Verify(PKCS1v15SHA1, msg, sig) }},
		{"SignX931", func() error { _, err := m.SignX931(msg); return err }},
		{"VerifyX931", func() error { _, err := m.Public().VerifyX931(tok); return err }},
		{"ParsePublicKey", func() error { _, err := ParsePublicKey(text); return err }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, bench.do())
			}
		})
	}
}
