package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/missedjobs"
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
			Identity: state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:  state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey: state.SecretText(strings.Repeat("QUFB", 18) + "QUE="), SessionSeed: state.SecretText(strings.Repeat("s", 32)),
			GossipKey: state.SecretText(strings.Repeat("g", 32)),
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

func TestWhatIsKnownOfAJob(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	members := roster(t)
	s := &service{jobs: router.NewJobs(0), since: now, members: members.View, m: &member{d: &Daemon{id: "m1", master: &localmaster.Config{MasterID: "master-1"}}}}
	jid := func(at time.Time) string { return at.Format(jidTime) + "000001" }
	s.jobs.Record("published", "m2", 0)
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
		{jid(now.Add(time.Hour)), "m2", wall.Uncertain},        // that node knows
		{jid(now.Add(time.Hour)), "nobody", wall.NotPublished}, // a minion's word, and no other node will judge it
		{jid(now.Add(time.Hour)), "w1", wall.NotPublished},     // nor does a witness
		{jid(now.Add(-time.Hour)), "nobody", wall.Uncertain},
		{jid(now.Add(-time.Hour)), "m1", wall.Uncertain},
		{jid(now.Add(jidClock / 2)), "m1", wall.Uncertain}, // clocks may have been set
		{"deploy-of-the-day-2026-01-02", "", wall.Uncertain},
		{"7", "", wall.Uncertain},
	} {
		if got := s.knowsJob(c.jid, c.masterID); got != c.want {
			t.Errorf("%s of %q: %d, not %d", c.jid, c.masterID, got, c.want)
		}
	}
}

// A minion that queues a job cuts its id at "_" and returns it under the rest, on a node that has run for hours.
func TestReturnsOfQueuedJobs(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	members := roster(t)
	s := &service{jobs: router.NewJobs(0), since: now.Add(-5 * time.Hour), members: members.View, m: &member{d: &Daemon{id: "m1", master: &localmaster.Config{MasterID: "master-1"}}}}
	id := func(n int) string { return now.Format(jidTime) + fmt.Sprintf("%06d", n) }
	for jid, publisher := range map[string]node.ID{
		id(1) + "_11": "m1", id(2) + "_21": "m2", id(3): "m1", id(3) + "_31": "m1",
		id(4) + "_41": "m1", id(4) + "_42": "m2", id(5) + "_51": "m1", id(5) + "_52": "m1",
	} {
		s.jobs.Record(jid, publisher, 0)
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
		if got := s.wholeJob(c.jid, c.masterID); got != c.want {
			t.Errorf("%q of %q: %q, not %q", c.jid, c.masterID, got, c.want)
		}
	}
	if got := s.knowsJob(id(1), "m1"); got != wall.NotPublished {
		t.Errorf("the cut id: %d", got)
	}
	if got := s.knowsJob(s.wholeJob(id(1), "m1"), "m1"); got != wall.Published {
		t.Errorf("the whole id: %d", got)
	}
}

// Two masters that give one id to different jobs are named; a job that several syndics publish is one job.
func TestOneIDForTwoJobs(t *testing.T) {
	job := func(fun string, serial int) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{
			"fun": fun, "arg": []any{"x"}, "tgt": "*", "tgt_type": "glob", "user": fmt.Sprint(serial),
		}, saltwire.Wire)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	d := &Daemon{id: "m1", log: slog.New(slog.DiscardHandler)}
	missed := missedjobs.New(missedjobs.Config{Ledger: missedjobs.NewLedger(t.TempDir()+"/seen", "boot", time.Now), Logger: d.log})
	s := &service{jobs: router.NewJobs(0), missed: missed, m: &member{d: d}}
	s.m.svc, d.member = s, s.m
	s.jobSeen("20261127000000000001", "m1", job("test.ping", 1))
	s.jobSeen("20261127000000000001", "m2", job("test.ping", 2))
	s.jobSeen("20261127000000000001", "m1", job("test.sleep", 3)) // its own master's doing
	if r := d.currentService().checkJobIDs(t.Context()); r.Level != fine.Level || s.jobs.Contested("20261127000000000001") {
		t.Errorf("one job: %+v", r)
	}
	for range 2 {
		s.jobSeen("20261127000000000002", "m1", job("test.ping", 1))
		s.jobSeen("20261127000000000002", "m2", job("state.apply", 2))
	}
	if !s.jobs.Contested("20261127000000000002") {
		t.Error("two jobs under one id are not noticed")
	}
	r := d.currentService().checkJobIDs(t.Context())
	if r.Level != health.Warn || !strings.Contains(r.Reason, "m1 and m2 gave the id 20261127000000000002 to two different jobs (1 such id ") {
		t.Errorf("%+v", r)
	}
}

func TestWallFollowsTheMaster(t *testing.T) {
	for version, filters := range map[string]bool{
		"3006.0": false, "3006.11": false, "3006.12": true, "3007.3": false, "3007.4": true, "3008.0": true,
	} {
		v, err := localmaster.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if filtersTags(v) != filters {
			t.Errorf("%s filters: %t", version, !filters)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	policy := func(text string) wall.Policy {
		write(t, path, "root_dir: "+dir+"\n"+text, 0o600)
		v, _ := localmaster.ParseVersion("3008.3")
		c, err := localmaster.LoadConfig(path, v)
		if err != nil {
			t.Fatal(err)
		}
		return wallPolicy(c)
	}
	if p := policy(""); p.FileRecv || p.Syndics || p.OnDemand != nil || !p.Filters {
		t.Errorf("the defaults of stock: %+v", p)
	}
	if p := policy("file_recv: True\norder_masters: True\non_demand_ext_pillar: [libvirt]\n"); !p.FileRecv || !p.Syndics || !slices.Equal(p.OnDemand, []string{"libvirt"}) {
		t.Errorf("%+v", p)
	}
}

func TestWall_NoCluster(t *testing.T) {
	n := startNode(t, "m1", t.TempDir(), "cluster_wall: {event_ids: enforce, budget: off}")
	if _, err := n.Wall(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the rules of a node without a cluster: %v", err)
	}
	if _, err := n.Protocols(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the protocols of a node without a cluster: %v", err)
	}
}
