package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/wall"
)

func TestWhatIsKnownOfAJob(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &service{jobs: router.NewJobs(0), since: now, m: &member{d: &Daemon{id: "m1", master: &localmaster.Config{MasterID: "master-1"}}}}
	jid := func(at time.Time) string { return at.Format(jidTime) + "000001" }
	s.jobs.Record("published", "m2")
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
		{jid(now.Add(time.Hour)), "m2", wall.Uncertain}, // that node knows
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

// What a node has seen of its minions' protocols survives a restart, and what is damaged is seen again.
func TestProtocolsAreKept(t *testing.T) {
	n := startNode(t, "m1", t.TempDir(), "cluster_wall: {event_ids: enforce, budget: off}")
	if _, err := n.Wall(t.Context()); err == nil {
		t.Error("a node without a cluster has a wall")
	}
	if _, err := n.Protocols(t.Context()); err == nil {
		t.Error("a node without a cluster has seen minions")
	}
	w := wall.New(wall.Config{})
	w.Proven(w.Minion("web1", "key"), 3)
	s := &service{m: &member{d: n.Daemon, log: n.log}, wall: w}
	s.saveProtocols()
	text, err := os.ReadFile(s.protocolsPath())
	if err != nil || !strings.Contains(string(text), `"web1"`) {
		t.Fatalf("%s, %v", text, err)
	}
	if err := os.Remove(s.protocolsPath()); err != nil {
		t.Fatal(err)
	}
	s.saveProtocols()
	if _, err := os.Stat(s.protocolsPath()); err == nil {
		t.Error("nothing new is written again")
	}
}
