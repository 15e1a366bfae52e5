package publishing

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// roster is a cluster of the masters m1 and m2 and the witness w1.
func roster(t *testing.T) *state.State {
	t.Helper()
	members := state.New()
	for _, r := range members.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)),
			GossipKey:   state.SecretText(strings.Repeat("g", 32)),
		},
		state.MemberAdd{ID: "m2", Addr: "10.0.0.2:4520", Fingerprint: strings.Repeat("b", 64), Weight: 100},
		state.MemberAdd{ID: "w1", Addr: "10.0.0.3:4520", Fingerprint: strings.Repeat("c", 64), Weight: 100, Witness: true},
	) {
		if r.Code == state.Invalid {
			t.Fatal(r.Err())
		}
	}
	return members
}

// newKnown is what m1 knows, with a table to which nothing was published.
func newKnown(members *state.State, since time.Time) (*KnownJobs, *router.Jobs) {
	table := router.NewJobs(0)
	return NewKnownJobs(KnownConfig{
		Self: "m1", Master: &localmaster.Config{MasterID: "master-1"}, View: members.View, Table: table, Since: since,
		Seen: func(string) {}, Cached: func(string) (string, bool) { return "", false },
		Logger: slog.New(slog.DiscardHandler),
	}), table
}

func TestKnownJobs_Know(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	members := roster(t)
	k, table := newKnown(members, now)
	jid := func(at time.Time) string { return at.Format(jidTime) + "000001" }
	table.Record("published", "m2", 0)
	for _, c := range []struct {
		jid, masterID string
		want          wall.Knowledge
	}{
		{"published", "", wall.Published},
		{"published", "m2", wall.Published},
		{jid(now.Add(time.Hour)), "", wall.NotPublished},
		{jid(now.Add(time.Hour)), "m1", wall.NotPublished},
		{jid(now.Add(time.Hour)), "master-1", wall.NotPublished},
		{jid(now.Add(time.Hour)) + "_4711", "", wall.NotPublished},
		{jid(now.Add(time.Hour)), "m2", wall.Uncertain},        // the other node knows
		{jid(now.Add(time.Hour)), "nobody", wall.NotPublished}, // a minion may send any, and no other node will judge it
		{jid(now.Add(time.Hour)), "w1", wall.NotPublished},     // nor does a witness
		{jid(now.Add(-time.Hour)), "nobody", wall.Uncertain},
		{jid(now.Add(-time.Hour)), "m1", wall.Uncertain},
		{jid(now.Add(jidClock / 2)), "m1", wall.Uncertain}, // clocks may have been set
		{"deploy-of-the-day-2026-01-02", "", wall.Uncertain},
		{"7", "", wall.Uncertain},
	} {
		check.Equal(t, k.Know(c.jid, c.masterID), c.want, c.jid, "of", c.masterID)
	}
}

// A minion that queues a job cuts its id at "_" and returns it under the rest, on a node that has run for hours.
func TestKnownJobs_FindWhole(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	members := roster(t)
	k, table := newKnown(members, now.Add(-5*time.Hour))
	id := func(n int) string { return now.Format(jidTime) + fmt.Sprintf("%06d", n) }
	for jid, publisher := range map[string]node.ID{
		id(1) + "_11": "m1", id(2) + "_21": "m2", id(3): "m1", id(3) + "_31": "m1",
		id(4) + "_41": "m1", id(4) + "_42": "m2", id(5) + "_51": "m1", id(5) + "_52": "m1",
	} {
		table.Record(jid, publisher, 0)
	}
	for _, c := range []struct {
		jid, masterID, want string
	}{
		{id(1), "", id(1) + "_11"},
		{id(1), "master-1", id(1) + "_11"},
		{id(1), "m1", id(1) + "_11"},
		{id(1), "m2", ""}, // it has published no such job
		{id(2), "m2", id(2) + "_21"},
		{id(2), "", id(2) + "_21"},
		{id(3), "m1", ""}, // a job of its own
		{id(4), "m1", id(4) + "_41"},
		{id(4), "m2", id(4) + "_42"},
		{id(4), "", ""}, // one of two
		{id(5), "m1", ""},
		{id(6), "m1", ""},
		{id(1) + "_11", "m1", ""},
		{id(1)[:19], "m1", ""},
		{"req", "", ""},
		{"", "", ""},
	} {
		check.Equal(t, k.FindWhole(c.jid, c.masterID), c.want, c.jid, "of", c.masterID)
	}
	check.Equal(t, k.Know(id(1), "m1"), wall.NotPublished, "the cut id")
	check.Equal(t, k.Know(k.FindWhole(id(1), "m1"), "m1"), wall.Published, "the whole id")
}

// Two masters that give one id to different jobs are named; a job that several syndics publish is one job.
// Two nodes whose masters are syndics pass on a batch of 3008, whose parts have one id, each at its own pace.
func TestKnownJobs_BatchOfSyndics(t *testing.T) {
	part := func(fun, kind string, minions ...any) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{
			"fun": fun, "arg": []any{"x"}, "tgt": minions, "tgt_type": kind,
		}, saltwire.Wire)
		require.NoError(t, err)
		return b
	}
	k, table := newKnown(state.New(), time.Now())
	k.c.Seen = func(string) {}
	for _, p := range []node.ID{"m1", "m2"} {
		k.Record("20261127000000000001", p, part("test.ping", "list", string(p)+"-first"))
		k.Record("20261127000000000001", p, part("test.ping", "list", string(p)+"-then"))
	}
	if table.Contested("20261127000000000001") {
		t.Error("the parts of a batch count as different jobs")
	}
	if HashContent(part("test.ping", "list", "a")) == HashContent(part("test.ping", "list", "b")) {
		t.Error("two parts of a batch are the same publication")
	}
	k.Record("20261127000000000002", "m1", part("test.ping", "list", "a"))
	k.Record("20261127000000000002", "m2", part("state.apply", "list", "a"))
	k.Record("20261127000000000003", "m1", part("test.ping", "compound", "a"))
	k.Record("20261127000000000003", "m2", part("test.ping", "compound", "b"))
	for _, jid := range []string{"20261127000000000002", "20261127000000000003"} {
		if !table.Contested(jid) {
			t.Errorf("two jobs under the id %s are not noticed", jid)
		}
	}
}

func TestKnownJobs_Check(t *testing.T) {
	job := func(fun string, serial int) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{
			"fun": fun, "arg": []any{"x"}, "tgt": "*", "tgt_type": "glob", "user": fmt.Sprint(serial),
		}, saltwire.Wire)
		require.NoError(t, err)
		return b
	}
	k, table := newKnown(state.New(), time.Now())
	seen := 0
	k.c.Seen = func(string) { seen++ }
	k.Record("20261127000000000001", "m1", job("test.ping", 1))
	k.Record("20261127000000000001", "m2", job("test.ping", 2))
	k.Record("20261127000000000001", "m1", job("test.sleep", 3)) // its own master's doing
	if r := k.Check(); r.Level != health.OK || table.Contested("20261127000000000001") {
		t.Errorf("one job: %+v", r)
	}
	for range 2 {
		k.Record("20261127000000000002", "m1", job("test.ping", 1))
		k.Record("20261127000000000002", "m2", job("state.apply", 2))
	}
	if !table.Contested("20261127000000000002") {
		t.Error("two jobs under one id are not noticed")
	}
	if seen != 7 {
		t.Errorf("%d publications were seen", seen)
	}
	r := k.Check()
	const says = "m1 and m2 gave the id 20261127000000000002 to two different jobs (1 such id "
	if r.Level != health.Warn || !strings.Contains(r.Reason, says) {
		t.Errorf("%+v", r)
	}
}
