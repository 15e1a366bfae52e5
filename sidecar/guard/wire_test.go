package guard

import (
	"testing"

	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/saltwire/saltwiretest"
)

// FuzzRefusals: whatever arrives, it is refused with a reason that is fit for a label, or it is what it must be.
func FuzzRefusals(f *testing.F) {
	load := saltwire.AppendRaw(saltwire.AppendRaw(saltwire.AppendMapHeader(nil, 1), "cmd"), "ping")
	f.Add(saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: "clear", Version: 3, HasVersion: true, Load: load}))
	f.Add(saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: "aes", Version: 3, HasVersion: true, ID: "web",
		Load: make([]byte, 96)}))
	f.Add([]byte("\x82\xa3enc\xa3pub\xa4load\x80"))
	f.Add([]byte{})
	stockTraffic(f, func(request []byte) { f.Add(request) })
	g := New(Config{Logger: quiet()})
	f.Fuzz(func(t *testing.T, body []byte) {
		env, err := saltwire.ParseEnvelope(body)
		var r *Refusal
		if err != nil {
			r = g.Malformed(err, remote)
		} else {
			r = g.CheckEnvelope(env, remote)
		}
		if r == nil {
			if env.Version < DefaultMinVersion || env.Enc != saltwire.EncClear && env.Enc != saltwire.EncAES {
				t.Fatalf("let through: enc %q version %d", env.Enc, env.Version)
			}
			if env.Enc == saltwire.EncAES && saltwire.ValidID(env.ID) != nil {
				t.Fatalf("let through: id %q", env.ID)
			}
			return
		}
		if r.Reason == "" || len(r.Reason) > 64 {
			t.Fatalf("reason %q", r.Reason)
		}
		for _, c := range string(r.Reason) {
			if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				t.Fatalf("reason %q", r.Reason)
			}
		}
	})
}

// stockTraffic adds what stock daemons of three versions sent (sidecar/saltwire/testdata/golden) to a corpus.
func stockTraffic(f *testing.F, add func(request []byte)) {
	f.Helper()
	for _, v := range saltwiretest.Recorded(f, "../saltwire") {
		for _, row := range append(v.Auth, v.Requests[:min(20, len(v.Requests))]...) {
			add(row.Request)
		}
	}
}
