package sidecar

import (
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/saltwire"
)

// TestNote: events that this node's master has taken are remembered, each of a request with several; others are not.
func TestNote(t *testing.T) {
	list := func(tags ...string) []byte {
		events := make([]any, 0, len(tags))
		for _, tag := range tags {
			events = append(events, map[string]any{"tag": tag, "data": "x"})
		}
		raw, err := saltwire.AppendAny(nil, events, saltwire.Wire)
		require.NoError(t, err)
		return raw
	}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		peek  saltwire.Peek
		route string
		reply []byte
		want  []eventlog.Event
	}{
		{"on the bus", saltwire.Peek{Cmd: "_minion_event", Tag: "a"}, "bus", nil,
			[]eventlog.Event{{At: at, Minion: "web1", Tag: "a", From: "m2"}}},
		{"by Python", saltwire.Peek{Cmd: "_minion_event", Tag: "a"}, "local", nil,
			[]eventlog.Event{{At: at, Minion: "web1", Tag: "a", From: "m2", Python: true}}},
		{"several", saltwire.Peek{Cmd: "_minion_event", Events: list("a", "b")}, "bus", nil,
			[]eventlog.Event{{At: at, Minion: "web1", Tag: "b", From: "m2"}, {At: at, Minion: "web1", Tag: "a", From: "m2"}}},
		{"another node's", saltwire.Peek{Cmd: "_minion_event", Tag: "a"}, "relayed", nil, nil},
		{"a return", saltwire.Peek{Cmd: "_return"}, "local", nil, nil},
		{"refused by the master", saltwire.Peek{Cmd: "_minion_event", Tag: "a"}, "local", badLoad, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Proxy{cfg: Config{Heard: eventlog.New()}}
			c.peek.ID = "web1"
			p.noteEvents(&call{request: &request{at: at, from: "m2"}, peek: c.peek}, c.route, c.reply)
			got := p.cfg.Heard.Newest("", 10)
			if len(got) != len(c.want) {
				t.Fatalf("%v", got)
			}
			for i, want := range c.want {
				if got[i] != want {
					t.Errorf("%v, not %v", got[i], want)
				}
			}
		})
	}
}
