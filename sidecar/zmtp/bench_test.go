package zmtp

import (
	"testing"

	"saltclusterd/integration/require"
)

func BenchmarkDecodeRequest(b *testing.B) {
	l := DefaultLimits
	d := NewDecoder(&l)
	_, _, _ = d.Next(AppendGreeting(nil))
	d.SetReady()
	in := AppendMessage(nil, nil, make([]byte, 600))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		for rest := in; len(rest) > 0; {
			_, n, err := d.Next(rest)
			require.NoError(b, err)
			rest = rest[n:]
		}
	}
}

func BenchmarkDecodeLargeInPieces(b *testing.B) {
	l := DefaultLimits
	d := NewDecoder(&l)
	_, _, _ = d.Next(AppendGreeting(nil))
	d.SetReady()
	in := AppendMessage(nil, nil, make([]byte, 1<<20))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		for rest := in; len(rest) > 0; {
			_, n, err := d.Next(rest[:min(64<<10, len(rest))])
			require.NoError(b, err)
			rest = rest[n:]
		}
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	body := make([]byte, 600)
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	b.SetBytes(600)
	for b.Loop() {
		dst = AppendMessage(dst[:0], nil, body)
	}
}
