//go:build integration

package scenario

import (
	"bytes"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltwire"
)

// minionCommand is what a minion has a master do, or asks it for.
type minionCommand struct {
	cmd    string
	fields map[string]any
}

// commandsOf are a pillar, mine.send, mine.get, publish.publish, a return and an event.
func commandsOf(m *byteMinion) []minionCommand {
	return []minionCommand{
		{"_pillar", map[string]any{
			"grains": map[string]any{"id": m.id}, "saltenv": "base", "pillarenv": nil, "pillar_override": map[string]any{},
			"extra_minion_data": map[string]any{}, "ver": "3",
		}},
		{"_mine", map[string]any{"data": map[string]any{"lab_revoked": m.id}, "clear": false}},
		{"_mine_get", map[string]any{"tgt": "*", "tgt_type": "glob", "fun": "lab_revoked"}},
		{"minion_pub", map[string]any{
			"fun": "test.ping", "arg": []any{}, "tgt": m.id, "tgt_type": "glob", "ret": "", "tmo": 5, "form": "clean",
			"no_parse": []any{},
		}},
		{"_return", map[string]any{"jid": "req", "fun": "test.ping", "return": true, "retcode": 0, "success": true}},
		{"_minion_event", map[string]any{"tag": firedTag(m), "data": map[string]any{}}},
	}
}

func firedTag(m *byteMinion) string { return "lab/revoked/" + m.id }

// countFired counts the events that a minion's commands have fired, on all buses.
func countFired(c *lab.Cluster, bus *listeners, m *byteMinion) (n int) {
	for _, at := range c.Nodes {
		n += bus.count(at.Name, firedTag(m))
	}
	return n
}

// commandsServed: each of them does what it is for, for a minion whose key is accepted.
func commandsServed(t *testing.T, c *lab.Cluster, bus *listeners, m *byteMinion) {
	t.Helper()
	ctx, n := t.Context(), c.Nodes[0]
	heard, err := m.signIn(ctx, n.Addr)
	if labtest.Must(t, err); heard != "accepted" {
		t.Fatalf("%s hears %q", m.id, heard)
	}
	for _, q := range commandsOf(m) {
		answer, _, err := m.request(ctx, n.Addr, q.cmd, q.fields)
		if err != nil || bytes.Equal(answer, saltwire.BadLoad()) {
			t.Errorf("%s is answered %.40q: %v", q.cmd, answer, err)
		}
	}
	eventually(t, time.Minute, "the event and the mine of "+m.id, func() bool {
		return countFired(c, bus, m) == 1 && countMines(c, m) == len(c.Nodes)
	})
}

// countMines counts the masters that have a minion's mine.
func countMines(c *lab.Cluster, m *byteMinion) (n int) {
	for _, at := range c.Nodes {
		if _, err := os.Stat(mineFile(at, m.id)); err == nil {
			n++
		}
	}
	return n
}

// commandsRefused: a node answers each of them "bad load" to a minion whose key was taken away.
func commandsRefused(t *testing.T, at *lab.Node, m *byteMinion) {
	t.Helper()
	for _, q := range commandsOf(m) {
		answer, _, err := m.request(t.Context(), at.Addr, q.cmd, q.fields)
		if err != nil || !bytes.Equal(answer, saltwire.BadLoad()) {
			t.Errorf("%s of %s is answered %.40q by %s: %v", q.cmd, m.id, answer, at.Name, err)
		}
	}
}
