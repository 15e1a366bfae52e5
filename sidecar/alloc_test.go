package sidecar

import (
	"testing"

	"saltclusterd/sidecar/router"
)

// What a request allocates does not depend on the machine, unlike the time that it takes. The ceilings hold for the
// fakes, too, which open and seal what a master would.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name    string
		load    map[string]any
		ceiling float64
	}{
		{"forwarded", map[string]any{"cmd": "_pillar", "grains": map[string]any{}, "saltenv": "base"}, 95},
		{"a return", map[string]any{"cmd": "_return", "jid": "20261121040506000001", "fun": "test.ping", "return": true,
			"retcode": 0}, 35},
	} {
		w := newWorld(t)
		w.proxy.cfg.Returns = &journals{}
		w.view.Nodes = []router.Node{{ID: "a", Weight: 100, Alive: true, MasterUp: true, Major: 3008}}
		body := w.request(t, c.load)
		ask := func() {
			if w.send(t, body, "") == nil {
				t.Fatalf("%s: not answered", c.name)
			}
		}
		ask()
		n := testing.AllocsPerRun(200, ask)
		t.Logf("%s: %.0f allocations", c.name, n)
		if n > c.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", c.name, n, c.ceiling)
		}
	}
}
