package sidecar

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
	"saltclusterd/sidecar/wall"
)

// walledWorld is a world with rules.
func walledWorld(t *testing.T, cfg wall.Config) (*world, *wall.Wall) {
	t.Helper()
	w := newWorld(t)
	cfg.Accepted = func(id string) bool { return id == "web1" || id == "db1" }
	rules := wall.New(cfg)
	w.proxy.cfg.Guard = guard.New(guard.Config{Logger: slog.New(slog.DiscardHandler), MinVersion: 2, Wall: rules})
	w.proxy.sessions.minion = w.proxy.cfg.Guard.Minion
	return w, rules
}

// plain opens a sealed reply; nil when it is none for the minion.
func (w *world) plain(reply []byte) []byte {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return nil
	}
	plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, sealed)
	if err != nil || !bytes.HasPrefix(plain, []byte(nonce)) {
		return nil
	}
	return plain[len(nonce):]
}

// What the rules refuse reaches no master, whichever way it comes, and its sender hears what a stock master would say.
func TestRefusedByTheRules(t *testing.T) {
	for _, from := range []string{"", "b"} {
		w, rules := walledWorld(t, wall.Config{})
		for _, load := range []map[string]any{
			{"cmd": "_minion_event", "tag": "salt/key", "data": map[string]any{}},
			{"cmd": "_return", "jid": "20260102030405000001", "return": true, "resource_id": "db1"},
			{"cmd": "_syndic_return", "load": []any{map[string]any{"id": "web1", "jid": "1",
				"return": map[string]any{"x": map[string]any{}}}}},
		} {
			if got := w.plain(w.send(t, w.request(t, load), node.ID(from))); !bytes.Equal(got, []byte{0xc0}) {
				t.Errorf("from %q: %v: answered %q", from, load["cmd"], got)
			}
		}
		if got := w.plain(w.send(t, w.request(t, map[string]any{"cmd": "_file_recv", "path": []any{"x"}, "loc": 0,
			"data": "x"}), node.ID(from))); !bytes.Equal(got, []byte{0xc2}) {
			t.Errorf("from %q: a push is answered %q", from, got)
		}
		if got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar", "grains": map[string]any{}, "pillarenv": "../x"}),
			node.ID(from)); !bytes.Equal(got, saltwire.BadLoad()) {
			t.Errorf("from %q: a pillar is answered %q", from, got)
		}
		if len(w.atMaster) != 0 || len(w.atPeers) != 0 {
			t.Errorf("from %q: %d requests reached the master, %v other nodes", from, len(w.atMaster), w.atPeers)
		}
		for _, rule := range []wall.Rule{wall.EventTags, wall.ReturnIDs, wall.SyndicReturns, wall.FileRecv, wall.FilePaths} {
			check.Equal(t, rules.Found()[rule].Refused, 1, "from", from, rule, "counts")
		}
	}
}

// What a syndic brings for another node's master is that one's to judge, when it is that one that takes it. A minion
// may say that it is for a node that cannot be reached, or for nobody.
func TestRules_SyndicReturnOfOtherNode(t *testing.T) {
	for _, c := range []struct {
		name, masterID string
		change         func(*world)
		syndics        bool
		did            int // in a journal
		atPeer         int
		refused        uint64
	}{
		{name: "for a node that is there", masterID: "b", atPeer: 1},
		{name: "for a node that is away", masterID: "b", change: func(w *world) { w.view.Nodes[1].Alive = false },
			refused: 1},
		{name: "for a node that does not answer", masterID: "b",
			change: func(w *world) { w.peerErr["b"] = errors.New("cut") }, atPeer: 1, refused: 1},
		{name: "for nobody", masterID: "nobody", change: func(w *world) { w.view.Nodes = w.view.Nodes[:1] }, refused: 1},
		{name: "for a node that is away, at a master of syndics", masterID: "b",
			change: func(w *world) { w.view.Nodes[1].Alive = false }, syndics: true, did: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, rules := walledWorld(t, wall.Config{Own: func(id string) bool { return id == "a" },
				Policy: wall.Policy{Syndics: c.syndics}})
			j := &journals{}
			w.proxy.cfg.Returns = j
			if c.change != nil {
				c.change(w)
			}
			load := map[string]any{"cmd": "_syndic_return", "load": []any{map[string]any{
				"id": "web1", "jid": "20261121000000000001", "master_id": c.masterID,
				"return": map[string]any{"x": map[string]any{"return": true}},
			}}}
			w.send(t, w.request(t, load), "")
			if n := rules.Found()[wall.SyndicReturns].Refused; n != c.refused || len(j.taken) != c.did ||
				w.atPeers["b"] != c.atPeer || len(w.atMaster) != 0 {
				t.Errorf("refused %d, taken %q, at peers %v, at the master %d", n, j.taken, w.atPeers, len(w.atMaster))
			}
		})
	}
}

// The master gets a list of events without those that must not be in it, under the session key it holds.
func TestCutByTheRules(t *testing.T) {
	w, _ := walledWorld(t, wall.Config{})
	if !w.opened(w.send(t, w.request(t, list("lab/a", "salt/auth", "lab/b")), "a")) {
		t.Fatal("not answered")
	}
	if len(w.atMaster) != 1 || !slices.Equal(w.tags(t, w.atMaster[0]), []string{"lab/a", "lab/b"}) {
		t.Errorf("the master got %d requests", len(w.atMaster))
	}
}

// What goes beyond a minion's budget is not answered, so that it comes again.
func TestBeyondTheBudget(t *testing.T) {
	w, rules := walledWorld(t, wall.Config{Rate: 1})
	lost := 0
	for range 19 {
		if w.send(t, w.request(t, map[string]any{"cmd": "_file_envs"}), "") == nil {
			t.Error("within the budget one is dropped")
		}
	}
	var all sync.WaitGroup // what waits does so side by side
	var mu sync.Mutex
	for range 21 {
		body := w.request(t, map[string]any{"cmd": "_file_envs"})
		all.Go(func() {
			got := w.send(t, body, "")
			mu.Lock()
			defer mu.Unlock()
			if got == nil {
				lost++
			}
		})
	}
	all.Wait()
	if lost == 0 || len(w.atMaster) != 40-lost || rules.Found()[wall.Budget].Refused != uint64(lost) {
		t.Errorf("%d dropped, %d at the master", lost, len(w.atMaster))
	}
}

// What a minion is answered counts for it, whoever has answered, and by the node that it has called.
func TestAnswersArePaidFor(t *testing.T) {
	for from, paid := range map[string]bool{"": true, "b": false} {
		w, _ := walledWorld(t, wall.Config{Answers: 1})
		ask := func(from string) []byte {
			return w.send(t, w.request(t, map[string]any{"cmd": "_file_envs"}), node.ID(from))
		}
		n := 0
		for range 30 { // of more than a byte each; twenty are free
			if ask(from) == nil {
				break
			}
			n++
		}
		if paid != (n < 30) {
			t.Errorf("from %q: %d are answered", from, n)
		}
	}
}

// What has a worker of the master's wait is no sender's own line, so that what else its minion asks does not stand
// behind it.
func TestCall_Sender(t *testing.T) {
	by := func(tgtType, exprForm string) saltwire.Raw {
		value := func(s string) saltwire.Value {
			if s == "" {
				return nil
			}
			return saltwire.AppendRaw(nil, s)
		}
		return saltwire.Raw{TgtType: value(tgtType), ExprForm: value(exprForm)}
	}
	for _, c := range []struct {
		cmd string
		raw saltwire.Raw
		own bool
	}{
		{cmd: "_pillar"}, {cmd: "minion_pub"}, {cmd: "minion_publish", own: true}, {cmd: "minion_runner", own: true},
		{cmd: "_register_resources", own: true},
		{cmd: "_mine_get"}, {cmd: "_mine_get", raw: by("glob", "")}, {cmd: "_mine_get", raw: by("grain", "")},
		{cmd: "_mine_get", raw: by("pcre", ""), own: true}, {cmd: "_mine_get", raw: by("", "grain_pcre"), own: true},
		{cmd: "_mine_get", raw: by("Compound", ""), own: true},
		{cmd: "minion_pub", raw: by("pcre", ""), own: true}, {cmd: "_pillar", raw: by("pcre", "")},
	} {
		one := &call{env: saltwire.Envelope{ID: "web1"}, peek: saltwire.Peek{Cmd: c.cmd, ID: "web1", Raw: c.raw}}
		old := &call{peek: saltwire.Peek{Cmd: c.cmd, ID: "web1", HasTok: true, Raw: c.raw}} // version 2
		for _, got := range []string{one.senderID(), old.senderID()} {
			got = strings.TrimPrefix(got, upstream.Long)
			if rest, waits := strings.CutPrefix(got, upstream.Waiting); rest != "web1" || waits != c.own {
				t.Errorf("%s by %q, %q: %q", c.cmd, c.raw.TgtType, c.raw.ExprForm, got)
			}
		}
	}
}

// Who has spoken version 3 is not believed in version 2, neither when signing in nor later.
func TestDowngradeIsRefused(t *testing.T) {
	w, rules := walledWorld(t, wall.Config{})
	w.shared = true
	signIn := saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Version: 2, HasVersion: true,
		Load: saltwire.AppendAuth(nil, saltwire.AuthRequest{
			ID: "web1", Nonce: nonce, Pub: w.minion.PublicText(), EncAlgo: saltcrypt.OAEPSHA1, SigAlgo: saltcrypt.PKCS1v15SHA1,
		}),
	})
	if got := w.send(t, signIn, ""); string(got) != "signed in" {
		t.Fatalf("before: %q", got)
	}
	w.shared = false
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_file_envs"}), "")) {
		t.Fatal("version 3 is not answered")
	}
	check.EqualSlices(t, w.send(t, signIn, ""), saltwire.BadLoad(), "sign-in of version 2")
	plain, err := saltwire.AppendAny(nil, map[string]any{"cmd": "_file_envs", "id": "web1", "nonce": nonce}, saltwire.Wire)
	require.NoError(t, err)
	old := saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Version: 2, HasVersion: true, Load: saltcrypt.NewCrypticle(w.epoch).Seal(nil, plain, nil),
	})
	check.EqualSlices(t, w.send(t, old, ""), saltwire.BadLoad(), "request of version 2")
	check.Equal(t, rules.Found()[wall.ProtocolDowngrade].Refused, 2, "counted")
}
