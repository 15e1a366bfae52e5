package guard

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

func TestClearCommandsFollowTheRule(t *testing.T) {
	for mode, refused := range map[wall.Mode]bool{wall.Enforce: true, wall.Log: false, wall.Off: false} {
		w := wall.New(wall.Config{Modes: map[wall.Rule]wall.Mode{wall.ClearCommands: mode}})
		g := New(Config{Logger: quiet(), Wall: w})
		if r := g.CheckClear("publish", remote); (r != nil) != refused {
			t.Errorf("%s: %v", mode, r)
		}
		if r := g.CheckClear("_prep_auth_info", remote); r == nil {
			t.Errorf("%s: what no Salt has passes", mode)
		}
		f := w.Found()[wall.ClearCommands]
		if want := map[wall.Mode]wall.Found{
			wall.Enforce: {Refused: 2}, wall.Log: {Refused: 1, Logged: 1}, wall.Off: {Refused: 1},
		}[mode]; f.Refused != want.Refused || f.Logged != want.Logged {
			t.Errorf("%s: counted %+v", mode, f)
		}
	}
}

// Every reason of this package and of what it parses with counts for a rule.
func TestReasonsHaveRules(t *testing.T) {
	g := New(Config{Logger: quiet(), Wall: wall.New(wall.Config{})})
	sum := func() (n uint64) {
		for _, f := range g.cfg.Wall.Found() {
			n += f.Refused
		}
		return n
	}
	for _, reason := range []Reason{
		ReasonVersion, ReasonInvalidID, ReasonAdminCommand, ReasonUnknownCommand, ReasonRelayedClear, ReasonUnusablePub,
		ReasonKeyNotAccepted, ReasonKeyUnusable, ReasonNotAuthentic, ReasonIDMismatch, ReasonNonce, ReasonExpired,
		ReasonNoTimestamp,
		ReasonNoToken, ReasonBadToken, ReasonMalformed,
	} {
		before := sum()
		g.Refuse(reason, "web", remote)
		if sum() != before+1 {
			t.Errorf("%s counts for no rule", reason)
		}
	}
	for _, reason := range []string{
		saltwire.ReasonTruncated, saltwire.ReasonTrailing, saltwire.ReasonDepth, saltwire.ReasonFormat, saltwire.ReasonNotMap,
		saltwire.ReasonKeyType, saltwire.ReasonDuplicate, saltwire.ReasonType, saltwire.ReasonMissing, saltwire.ReasonSize,
		saltwire.ReasonEnc, saltwire.ReasonVersion, saltwire.ReasonCommand, saltwire.ReasonEncAlgo, saltwire.ReasonSigAlgo,
		saltwire.ReasonInvalidID, saltwire.ReasonNotText, saltwire.ReasonTooManyKey,
	} {
		before := sum()
		g.Malformed(&saltwire.Refused{Reason: reason}, remote)
		if sum() != before+1 {
			t.Errorf("%s counts for no rule", reason)
		}
	}
}

// BenchmarkRules is what all rules together cost a request: reading it, the guard's checks and the wall's. Opening it,
// which any proxy has to do, is left out.
func BenchmarkRules(b *testing.B) {
	web := newMinion(b, "salt")
	many, failed := map[string]any{}, map[string]any{}
	for i := range 1000 {
		failed[fmt.Sprintf("file_|-id%d_|-/etc/file%d_|-managed", i, i)] = map[string]any{"changes": map[string]any{},
			"result": false, "comment": strings.Repeat("x", 40)}
		many[fmt.Sprintf("key%d", i)] = map[string]any{"changes": map[string]any{}, "result": true,
			"comment": strings.Repeat("x", 40)}
	}
	events := make([]any, 10)
	for i := range events {
		events[i] = map[string]any{"tag": fmt.Sprintf("salt/beacon/web/load/%d", i), "data": map[string]any{"n": i}}
	}
	for _, c := range []struct {
		name, cmd string
		f         map[string]any
	}{
		{"return", "_return", map[string]any{"jid": "20260102030405000001", "return": true, "fun": "test.ping",
			"fun_args": []any{}, "retcode": 0, "master_id": "m1"}},
		{"return of 1000 states", "_return", map[string]any{"jid": "20260102030405000001", "return": many,
			"fun": "state.apply", "fun_args": []any{}, "retcode": 0}},
		{"return of 1000 failed states", "_return",
			map[string]any{"jid": "20260102030405000001", "return": failed, "fun": "state.sls", "fun_args": []any{},
				"retcode": 2}},
		{"event", "_minion_event", map[string]any{"tag": "salt/beacon/web/load/", "data": map[string]any{"n": 1}}},
		{"ten events", "_minion_event", map[string]any{"events": events, "pretag": nil}},
		{"file", "_serve_file", map[string]any{"path": "apache/files/etc/apache2/apache2.conf", "saltenv": "base", "loc": 0}},
		{"pillar", "_pillar", map[string]any{"grains": map[string]any{"id": "web", "os": "Debian"}, "saltenv": "base",
			"pillarenv": nil}},
		{"environments", "_file_envs", nil},
		{"refused event", "_minion_event", map[string]any{"tag": "salt/key", "data": map[string]any{"n": 1}}},
	} {
		all := map[string]any{"cmd": c.cmd, "id": "web", "nonce": nonce, "ts": 1_700_000_000, "tok": web.tok}
		for k, v := range c.f {
			all[k] = v
		}
		plain, err := saltwire.AppendAny(nil, all, saltwire.Wire)
		require.NoError(b, err)
		body := saltwire.AppendEnvelope(nil, saltwire.Envelope{
			Enc: saltwire.EncAES, Load: make([]byte, len(plain)+64), Version: 3, HasVersion: true, ID: "web",
			EncAlgo: "OAEP-SHA1", SigAlgo: "PKCS1v15-SHA1",
		})
		w := wall.New(wall.Config{
			Modes: map[wall.Rule]wall.Mode{wall.EventIDs: wall.Enforce, wall.ReturnJobs: wall.Enforce}, Rate: 1 << 40,
			Bytes:    1 << 50,
			Accepted: func(id string) bool { return id == "web" || id == "db" },
			Job:      func(string, string) wall.Knowledge { return wall.Published },
		})
		g := New(Config{Logger: quiet(), Wall: w})
		remote := netip.MustParseAddrPort("192.0.2.7:40000")
		minion := g.Minion("web", web.public.Text())
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				env, err := saltwire.ParseEnvelope(body)
				require.NoError(b, err)
				if r := g.CheckEnvelope(env, remote); r != nil {
					b.Fatal(r)
				}
				p, err := saltwire.PeekLoad(plain)
				require.NoError(b, err)
				if r := g.CheckLoad(env, p, web.public, remote); r != nil {
					b.Fatal(r)
				}
				v := g.CheckRules(env, &wall.Request{Peek: &p, Plain: plain, Minion: minion, Size: len(body), Remote: remote})
				if v.Refused != (c.name == "refused event") || v.Plain != nil {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
