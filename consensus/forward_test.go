package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func ask(t *testing.T, n *Node, req string) forwardReply {
	t.Helper()
	b, err := n.HandleForward(t.Context(), "m2", []byte(req))
	require.NoError(t, err)
	var rep forwardReply
	require.NoError(t, json.Unmarshal(b, &rep))
	return rep
}

func TestHandleForwardRefuses(t *testing.T) {
	c := form(t, 2, nil)
	l, f := c.leader(), c.follower()
	before := l.View().Rev()
	birth, err := state.EncodeRequest(state.Request{Commands: []state.Command{initFor("m1")}})
	require.NoError(t, err)
	for name, req := range map[string]string{
		"empty":        ``,
		"not JSON":     `}{`,
		"version":      `{"v":2,"op":"read"}`,
		"operation":    `{"v":1,"op":"reboot"}`,
		"no request":   `{"v":1,"op":"propose"}`,
		"no commands":  `{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[]}]}}`,
		"bad command":  `{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"key.set","d":{"id":7}}]}]}}`,
		"bad id":       `{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"denied.clear","d":{"id":"../x"}}]}]}}`,
		"from later":   `{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"tree.set","d":{}}]}]}}`,
		"another init": `{"v":1,"op":"propose","request":` + string(birth) + `}`,
		"huge":         strings.Repeat(" ", MaxForward+1),
	} {
		if rep := ask(t, l, req); rep.Code != fwInvalid {
			t.Errorf("%s: %+v", name, rep)
		}
	}
	if rep := ask(t, f, `{"v":1,"op":"read"}`); rep.Code != fwNotLeader || rep.Leader != l.cfg.ID {
		t.Errorf("a follower: %+v", rep)
	}
	if rep := ask(t, l, `{"v":1,"op":"read"}`); rep.Code != "" || rep.Index == 0 {
		t.Errorf("read: %+v", rep)
	}
	check.Equal(t, l.View().Rev(), before, "a refused request changed the state")
	c.stop(f.cfg.ID)
	if rep := ask(t, f, `{"v":1,"op":"read"}`); rep.Code != fwFailed {
		t.Errorf("a closed node: %+v", rep)
	}
	c.start(f.cfg.ID)
}

// A member proposes in its own name.
func TestProposedInOnesOwnName(t *testing.T) {
	c := form(t, 2, nil)
	rep := ask(t, c.leader(),
		`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"id":"x","c":[{"v":1,"t":"key.set","d":{"id":"web1","state":"accepted","pub":"P","by":"m1","cause":"salt-key"}}]}]}}`)
	if rep.Code != "" || len(rep.Results) != 1 || rep.Results[0].Code != state.OK {
		t.Fatalf("%+v", rep)
	}
	k, ok := c.leader().View().Key("web1")
	if !ok || k.Audit.By != "m2" || k.Audit.Cause != "salt-key" {
		t.Errorf("%+v", k)
	}
	for _, cmd := range []state.Command{
		state.MemberAdd{}, state.MemberRemove{}, state.MemberSet{}, state.TombstonesPrune{}, state.DeniedSet{},
		state.EpochRotate{}, state.TokenAdd{}, state.RootsPropose{},
	} {
		check.Contains(t, fmt.Sprintf("%+v", state.ProposedBy(cmd, "m2")), "By:m2")
	}
}

// What a broken leader answers must not be taken for a result.
func TestForwardDistrusts(t *testing.T) {
	ok := `{"v":1,"index":9,"results":[{"rev":4}]}`
	for name, tc := range map[string]struct {
		answer       string
		err          error
		maybe, final bool
	}{
		"good":           {answer: ok},
		"no connection":  {err: errors.New("refused"), maybe: true},
		"garbage":        {answer: `xx`, maybe: true},
		"version":        {answer: `{"v":3}`, maybe: true},
		"too few":        {answer: `{"v":1,"results":[]}`, maybe: true, final: true},
		"not the leader": {answer: `{"v":1,"code":"not_leader","leader":"m9"}`},
		"failed":         {answer: `{"v":1,"code":"failed","maybe":true}`, maybe: true},
		"failed surely":  {answer: `{"v":1,"code":"failed"}`},
		"invalid":        {answer: `{"v":1,"code":"invalid","message":"no"}`, final: true},
		"unknown code":   {answer: `{"v":1,"code":"later"}`},
	} {
		n, err := New(Config{ID: "m1", Dir: t.TempDir(), Port: fabricPort{newFabric(), "m1"},
			Stats:   func(context.Context, node.ID) (PeerStats, error) { return PeerStats{}, errCut },
			Forward: func(context.Context, node.ID, []byte) ([]byte, error) { return []byte(tc.answer), tc.err }})
		require.NoError(t, err)
		o, fail := n.proposeAtLeader(t.Context(), "m2", state.Request{ID: "x", Commands: []state.Command{accept("a")}})
		if good := tc.answer == ok; good != (fail == nil) || (good && (o.index != 9 || o.results[0].Rev != 4)) {
			t.Errorf("%s: %+v, %v", name, o, fail)
		} else if fail != nil && (fail.maybe != tc.maybe || fail.final != tc.final) {
			t.Errorf("%s: maybe %v final %v: %v", name, fail.maybe, fail.final, fail)
		}
	}
}

func TestVerdict(t *testing.T) {
	cause := errors.New("cause")
	for _, tc := range []struct{ maybe, late, noLeader, uncertain bool }{
		{false, false, false, false}, {false, true, true, false}, {true, false, false, true}, {true, true, true, true},
	} {
		err := proposalError(cause, tc.maybe, tc.late)
		if errors.Is(err, ErrNoLeader) != tc.noLeader || errors.Is(err, ErrUncertain) != tc.uncertain ||
			!errors.Is(err, cause) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	if err := error(&NotLeaderError{Leader: "m2"}); !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), "m2") {
		t.Errorf("%v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Config{ID: "m1", Dir: "x", Port: fabricPort{}, Forward: newFabric().forward("m1"),
		Stats: newFabric().stats("m1")}
	for name, spoil := range map[string]func(*Config){
		"id":      func(c *Config) { c.ID = "M 1" },
		"dir":     func(c *Config) { c.Dir = "" },
		"port":    func(c *Config) { c.Port = nil },
		"forward": func(c *Config) { c.Forward = nil },
		"stats":   func(c *Config) { c.Stats = nil },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	n, err := New(good)
	require.NoError(t, err)
	if _, err := n.Propose(t.Context(), accept("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("propose before open: %v", err)
	}
	if n.HasState() || n.Leader() != "" || n.Serving() || n.Detached() || n.Status().Role != RoleStopped {
		t.Errorf("before open: %+v", n.Status())
	}
	check.Equal(t, n.cfg.Timing.Heartbeat, DefaultTiming().Heartbeat, "no default timing")
}

func FuzzHandle(f *testing.F) {
	n, err := New(Config{ID: "m1", Dir: "unused", Port: fabricPort{}, Forward: newFabric().forward("m1"),
		Stats: newFabric().stats("m1")})
	require.NoError(f, err)
	f.Add([]byte(`{"v":1,"op":"read"}`))
	f.Add([]byte(`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody works on the queue here
		if rep := n.handleForward(ctx, "m2", b); rep.Code == "" {
			t.Errorf("a closed node gave %+v", rep)
		}
		if rep := n.handlePropose(ctx, "m2", b); rep.Code == "" {
			t.Errorf("a closed node gave %+v", rep)
		}
	})
}
