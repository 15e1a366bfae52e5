package saltwire

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
)

func BenchmarkParseEnvelopePeekLoad(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		load := mp(b, map[string]any{
			"cmd": "_return", "id": "minion-1.example.org", "jid": "20200101000000000000", "fun": "state.apply",
			"fun_args": []any{},
			"return":   map[string]any{"data": bytes.Repeat([]byte{'r'}, size)}, "retcode": 0, "success": true,
			"master_id": "node-1",
			"nonce":     "0123456789abcdef0123456789abcdef", "ts": 1700000000, "tok": bytes.Repeat([]byte{1}, 256),
		})
		body := AppendEnvelope(nil, Envelope{Enc: EncAES, Version: 3, HasVersion: true, ID: "minion-1.example.org",
			Load: load, EncAlgo: encSHA1, SigAlgo: sigSHA1})
		b.Run(map[int]string{1 << 10: "1KiB", 64 << 10: "64KiB"}[size], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := ParseEnvelope(body)
				require.NoError(b, err)
				if _, err := PeekLoad(e.Load); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSetSerial(b *testing.B) {
	plain := mp(b, map[string]any{"jid": "20200101000000000000", "fun": "test.ping", "tgt": "*", "tgt_type": "glob",
		"serial": 5, "arg": []any{}})
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = SetSerial(buf[:0], plain, 1<<40)
	}
}
