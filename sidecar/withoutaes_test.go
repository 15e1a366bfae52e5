package sidecar

import (
	"bytes"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// A load without AES is served on the word of a certificate that names its minion, where masters allow it, and on this
// node only. The master gets it sealed.
func TestLoadWithoutAES(t *testing.T) {
	named := func(name string) func(string) bool { return func(id string) bool { return id == name } }
	for name, c := range map[string]struct {
		forbidden bool
		proves    func(string) bool
		from      node.ID
		load      map[string]any // what differs from the minion's own
		cut       int            // bytes of the load that are missing at its end
		served    bool
	}{
		"of the minion":             {proves: named("web1"), served: true},
		"where masters forbid it":   {proves: named("web1"), forbidden: true},
		"without a certificate":     {proves: named("")},
		"without TLS":               {},
		"of another minion":         {proves: named("web2")},
		"for another minion inside": {proves: named("web1"), load: map[string]any{"id": "web2"}},
		"with another's token":      {proves: named("web1"), load: map[string]any{"tok": bytes.Repeat([]byte("x"), 256)}},
		"relayed by a node":         {proves: named("web1"), from: "n2"},
		"cut short":                 {proves: named("web1"), cut: 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.cfg.WithoutAES = func() bool { return !c.forbidden }
			load := map[string]any{"cmd": "_pillar"}
			for k, v := range c.load {
				load[k] = v
			}
			env, err := saltwire.ParseEnvelope(w.request(t, load))
			require.NoError(t, err)
			plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, env.Load)
			require.NoError(t, err)
			env.Load = append(bytes.Clone(withoutAES), plain[:len(plain)-c.cut]...)
			reply := w.take(t, &request{body: saltwire.AppendEnvelope(nil, env), from: c.from, proves: c.proves})
			if !c.served {
				if !bytes.Equal(reply, saltwire.BadLoad()) || len(w.atMaster) != 0 {
					t.Errorf("answered %q, %d requests at the master", reply, len(w.atMaster))
				}
				return
			}
			if !w.opened(reply) || len(w.atMaster) != 1 {
				t.Errorf("answered %q, %d requests at the master", reply, len(w.atMaster))
			}
		})
	}
}
