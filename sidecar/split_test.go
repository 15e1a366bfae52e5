package sidecar

import (
	"errors"
	"slices"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// tags opens a request as the master does and lists the events in it.
func (w *world) tags(t *testing.T, body []byte) []string {
	t.Helper()
	env, err := saltwire.ParseEnvelope(body)
	require.NoError(t, err)
	plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, env.Load)
	require.NoError(t, err)
	p, err := saltwire.PeekLoad(plain)
	if err != nil || p.ID != "web1" || p.Nonce != nonce {
		t.Fatalf("%+v %v", p, err)
	}
	tags, err := saltwire.EventTags(p.Events)
	require.NoError(t, err)
	return tags
}

func eventWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	rules, err := router.NewEventRules([]router.EventRule{
		{Tag: "here", Route: "origin"}, {Tag: "lead", Route: "leader"}, {Tag: "all", Route: "all"},
	})
	require.NoError(t, err)
	w.view.Events, w.view.Leader = rules, "b"
	return w
}

func list(tags ...string) map[string]any {
	var events []any
	for i, tag := range tags {
		events = append(events, map[string]any{"tag": tag, "data": map[string]any{"n": int64(i)}})
	}
	return map[string]any{"cmd": "_minion_event", "pretag": nil, "events": events}
}

func TestEventsGoTheirWays(t *testing.T) {
	unsent := errors.New("no answer")
	for _, c := range []struct {
		name     string
		load     map[string]any
		broken   func(*world)
		answered bool
		master   [][]string // the lists of events that the local master got
		peers    map[node.ID]int
	}{
		{"one way, byte for byte", list("here", "here"), nil, true, [][]string{{"here", "here"}}, map[node.ID]int{}},
		{"two ways", list("here", "lead", "here"), nil, true, [][]string{{"here", "here"}}, map[node.ID]int{"b": 1}},
		{"all", list("all"), nil, true, [][]string{{"all"}}, map[node.ID]int{"b": 1, "c": 1}},
		{"all and one", list("lead", "all"), nil, true, [][]string{{"all"}}, map[node.ID]int{"b": 2, "c": 1}},
		{
			"a way that leads nowhere is not tried again with the others", list("here", "lead"),
			func(w *world) { w.peerErr["b"] = unsent }, true, [][]string{{"here"}}, map[node.ID]int{"b": 1},
		},
		{
			"no way leads anywhere", list("here", "lead"),
			func(w *world) {
				w.peerErr["b"] = unsent
				w.masterErr = unsent
			}, false, [][]string{{"here"}}, map[node.ID]int{"b": 1},
		},
		{
			"all, of which the first does not answer", list("all"),
			func(w *world) { w.masterErr = unsent }, true, [][]string{{"all"}}, map[node.ID]int{"b": 1, "c": 1},
		},
		{
			"the next takes what was not sent", list("lead", "all"),
			func(w *world) { w.masterErr = upstream.ErrDown; w.peerErr["b"] = unsent },
			true, nil, map[node.ID]int{"b": 2, "c": 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := eventWorld(t)
			if c.broken != nil {
				c.broken(w)
			}
			body := w.request(t, c.load)
			reply := w.send(t, body, "")
			w.proxy.wg.Wait()
			if w.opened(reply) != c.answered {
				t.Errorf("answered: %v", !c.answered)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for i, want := range c.master {
				if i >= len(w.atMaster) {
					t.Fatalf("the master got %d requests", len(w.atMaster))
				}
				if got := w.tags(t, w.atMaster[i]); !slices.Equal(got, want) {
					t.Errorf("the master got %q", got)
				}
			}
			for n, times := range c.peers {
				if w.atPeers[n] != times {
					t.Errorf("peers got %v", w.atPeers)
				}
			}
			if copies, bytes := w.proxy.copies.countHeld(); copies != 0 || bytes != 0 {
				t.Errorf("room of %d copies, %d bytes is not given back", copies, bytes)
			}
		})
	}
}

// The parts of a list wait for a master as a whole request does, each for its own.
func TestPartsWait(t *testing.T) {
	w := eventWorld(t)
	w.masterErr, w.peerErr["b"], w.peerErr["c"] = upstream.ErrDown, masterDown(t), masterDown(t)
	answered := make(chan []byte, 1)
	go func() { answered <- w.send(t, w.request(t, list("here", "lead", "here")), "") }()
	w.awaited(t, 2)
	w.mu.Lock()
	clear(w.peerErr)
	clear(w.atPeers)
	w.masterErr, w.atMaster = nil, nil
	w.mu.Unlock()
	w.proxy.NotifyMasters()
	if !w.opened(<-answered) {
		t.Error("not answered when masters were there")
	}
	if len(w.atMaster) != 1 || !slices.Equal(w.tags(t, w.atMaster[0]), []string{"here", "here"}) || w.atPeers["b"] != 1 ||
		w.atPeers["c"] != 0 {
		t.Errorf("the master got %d, peers %v", len(w.atMaster), w.atPeers)
	}
	// A minion sends all of them again after a minute: a part gives up before, for the sake of those that have fired.
	late := &call{request: &request{at: time.Now().Add(-partTimeout - time.Second)}, partial: true}
	if !w.proxy.isExpired(late, time.Now()) {
		t.Error("a part waits for as long as a whole request")
	}
}

func TestRelayedEventsStay(t *testing.T) {
	w := eventWorld(t)
	if !w.opened(w.send(t, w.request(t, list("all", "lead", "other")), "b")) || len(w.atMaster) != 1 ||
		len(w.atPeers) != 0 {
		t.Errorf("master %d, peers %v", len(w.atMaster), w.atPeers)
	}
}
