package sidecar

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// A master's cached pillar counts only while this node has been the minion's owner without a break since it was
// cleared.
func TestCachedPillarOfBefore(t *testing.T) {
	w := newWorld(t)
	owned := w.view.Owns("web1")
	cleared := func(env string) bool {
		t.Helper()
		before := len(w.atMaster)
		body := w.request(t, map[string]any{"cmd": "_pillar", "pillarenv": env, "grains": map[string]any{}})
		if !w.opened(w.send(t, body, "b")) || len(w.atMaster) != before+1 { // handed over: it stays here
			t.Fatal("not answered here")
		}
		sent, err := saltwire.ParseEnvelope(w.atMaster[before])
		require.NoError(t, err)
		plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, sent.Load)
		require.NoError(t, err)
		return bytes.Contains(plain, []byte("clean_cache"))
	}
	if cleared("base") {
		t.Error("a master that does not cache was told to clear its cache")
	}
	w.proxy.cfg.PillarCache = true
	for _, step := range []struct {
		what    string
		do      func()
		cleared bool
	}{
		{"first", func() {}, true},
		{"again", func() {}, !owned},
		{"after a change among masters", w.proxy.NotifyMasters, true},
		{"and again", func() {}, !owned},
		{"no longer the owner", func() { w.view.Nodes[0].MasterUp = false }, true},
		{"still not", func() {}, true},
		{"the owner, as before", func() { w.view.Nodes[0].MasterUp = true; w.view.Nodes = w.view.Nodes[:1] }, true},
		{"the only one", func() {}, false},
		{"another master's pillar comes", func() { w.proxy.PillarComes("web1") }, true},
		{"it was rendered here", func() {}, false},
		{"another minion's comes", func() { w.proxy.PillarComes("web2") }, false},
	} {
		step.do()
		if got := cleared("base"); got != step.cleared {
			t.Errorf("%s: cleared %v", step.what, got)
		}
	}
	if !cleared("dev") || cleared("dev") {
		t.Error("the pillar of another environment")
	}
}
