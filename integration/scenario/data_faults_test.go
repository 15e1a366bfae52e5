//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// What masters of three versions know of minions, jobs and tokens is the same on each after faults: a power loss,
// clocks a minute apart with kills while it is written, a partition with news on both sides, a key that is deleted
// while a node is down.
func TestDataFaults(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-data")
	}
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MasterSettings: clusterMasters, Seams: lab.SeamClock,
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"a power loss", testDataPowerLoss},
		{"clocks a minute apart and kills", testDataClocks},
		{"a partition", testDataPartition},
		{"a key deleted while a node is down", testDataPurgeDown},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(40))
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	}
}

// askList asks what jobs.list_jobs finds by each of its filters.
const askList = `
import json, sys
import salt.config, salt.loader, salt.minion
opts = salt.config.master_config(sys.argv[1])
loaded = salt.minion.MasterMinion(opts)
salt.minion.MasterMinion = lambda *args, **kwargs: loaded
run = salt.loader.runner(opts)
said = {}
for how in json.loads(sys.argv[2]):
    said[json.dumps(how)] = run["jobs.list_jobs"](**how)
said["filter"] = run["jobs.list_jobs_filter"](count=500, filter_find_job=True)
said["exit_success"] = {jid: run["jobs.exit_success"](jid) for jid in sys.argv[3:]}
print("\n" + json.dumps(said, sort_keys=True, default=str))
`

// sameLists waits until all nodes find the same jobs by each filter, and returns what they find.
func sameLists(t *testing.T, nodes []*lab.Node, filters []map[string]any, jids ...string) (said map[string]string) {
	t.Helper()
	ask := func(ctx context.Context, n *lab.Node) (map[string]string, error) {
		return answersOf(ctx, n, append([]string{"-c", askList, n.Master.ConfigDir + "/master", text(filters)}, jids...)...)
	}
	labtest.Must(t, lab.Eventually(t.Context(), askedWithin, "the same lists on all masters",
		func(ctx context.Context) error {
			var err error
			if said, err = ask(ctx, nodes[0]); err != nil {
				return err
			}
			for _, n := range nodes[1:] {
				other, err := ask(ctx, n)
				if err != nil {
					return err
				}
				if d := unlike(said, other); d != "" {
					return fmt.Errorf("%s and %s: %s", nodes[0].Name, n.Name, d)
				}
			}
			return nil
		}))
	return said
}

// news makes each minion tell new grains, a new pillar and a new mine, and returns what then means whom.
func news(t *testing.T, c *lab.Cluster, word string) (targets []target) {
	t.Helper()
	var telling errgroup.Group
	for i, m := range c.Minions {
		value := fmt.Sprint(word, i)
		telling.Go(func() error { return told(t.Context(), m, value) })
		targets = append(targets, target{"grain", "lab_data:" + value, []string{m.ID}})
	}
	labtest.Must(t, telling.Wait())
	return append(targets, target{"compound", "G@lab_data:" + word + "* and I@demo:for:*", c.IDs()})
}

// told has a minion hand its master a new grain, its pillar and a mine; tried again, for its node may just be gone.
func told(ctx context.Context, m *lab.Minion, value string) error {
	return lab.Eventually(ctx, 2*time.Minute, m.ID+" to tell "+value, func(ctx context.Context) error {
		for _, call := range [][]string{
			{"grains.setval", "lab_data", value}, {"pillar.items"}, {"mine.send", "lab_mine", "mine_function=test.echo", value},
		} {
			if _, err := m.Call(ctx, call[0], call[1:]...); err != nil {
				return err
			}
		}
		return nil
	})
}

// agree compares all that the masters say.
func agree(t *testing.T, c *lab.Cluster, targets []target, word string, jids ...string) {
	t.Helper()
	said := sameEverywhere(t, askedWithin, c.Nodes, append(targetsOf(c), targets...), "lab_mine", true)
	for i := range c.Minions {
		for _, question := range []string{"cache.grains", "cache.mine", "mine.get"} {
			if value := fmt.Sprint(word, i); !strings.Contains(said[question], value) {
				t.Errorf("%s lacks %s: %.300s", question, value, said[question])
			}
		}
	}
	if strings.Contains(said["manage.status"], `"up": []`) {
		t.Errorf("manage.status: %s", said["manage.status"])
	}
	sameJobs(t, askedWithin, c.Nodes, jids...)
	lists := sameLists(t, c.Nodes, []map[string]any{
		{}, {"search_function": "test.arg"}, {"search_function": []string{"test.a*", "test.ping"}}, {"search_target": "*"},
		{"search_target": c.IDs()[0]}, {"start_time": "2001, Jan 1", "end_time": "2099, Jan 1"},
		{"start_time": "2099, Jan 1"},
		{"search_metadata": map[string]string{"a": "b"}},
	}, jids...)
	for _, jid := range jids { // some are of runners, whose function has another name in lists
		if !strings.Contains(lists["{}"], jid) || !strings.Contains(lists["filter"], jid) {
			t.Errorf("list_jobs lacks %s: %.300s", jid, lists["{}"])
		}
	}
}

// What is written while clocks differ by two minutes and one node after the other is killed is what the minions said
// last.
func testDataClocks(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	labtest.Must(t, c.Nodes[1].Daemon.SetSeams(lab.Seams{Clock: time.Minute}))
	labtest.Must(t, c.Nodes[2].Daemon.SetSeams(lab.Seams{Clock: -time.Minute}))
	defer func() {
		for _, n := range c.Nodes[1:] {
			labtest.Must(t, n.Daemon.SetSeams(lab.Seams{}))
		}
	}()
	var jids []string
	for i, n := range c.Nodes {
		var telling errgroup.Group // which the kill meets somewhere
		for j, m := range c.Minions {
			telling.Go(func() error { return told(ctx, m, fmt.Sprint("between", i, j)) })
		}
		jids = append(jids, async(t, c.Nodes[(i+1)%3], "test.arg", fmt.Sprint("killed", i)),
			runner(t, n, fmt.Sprint("clocks-", n.Name)))
		labtest.Must(t, n.Daemon.Kill())
		labtest.Must(t, n.Daemon.Start(ctx))
		labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
		labtest.Must(t, telling.Wait())
	}
	targets := news(t, c, "clocks")
	for _, g := range []string{"between0", "between1", "between2"} {
		targets = append(targets, target{"grain", "lab_data:" + g + "*", []string{}})
	}
	agree(t, c, targets, "clocks", jids...)
	tokensAgree(t, c)
}

// tokensAgree makes a token on each master, and has all of them take each.
func tokensAgree(t *testing.T, c *lab.Cluster) {
	t.Helper()
	id := c.Minions[0].ID
	var tokens []string
	for _, n := range c.Nodes {
		tokens = append(tokens, makeToken(t, n, id))
	}
	tokensWork(t, c, id, tokens)
}

func tokensWork(t *testing.T, c *lab.Cluster, id string, tokens []string) {
	t.Helper()
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, "tokens on "+n.Name, func(context.Context) error {
			return tokenFiles(n, tokens, len(tokens))
		}))
		for i, got := range useTokens(t, n, id, tokens) {
			if may := i%2 == 0; may != (got[id] == true) || may == (got["error"] != nil) {
				t.Errorf("token %d on %s: %v", i/2, n.Name, got)
			}
		}
	}
}

// Both sides of a partition have news; afterwards all have all of it.
func testDataPartition(t *testing.T, c *lab.Cluster) {
	ctx, alone, id := t.Context(), c.Nodes[1], c.Minions[0].ID
	before := makeToken(t, alone, id)
	labtest.Must(t, c.Lab.Isolate(ctx, alone.Host))
	healed := false
	defer func() {
		if !healed {
			labtest.Must(t, c.Lab.Heal(ctx))
		}
	}()
	labtest.Must(t, c.Answering(ctx, c.Nodes[0])) // its minions have gone to the others
	jids := []string{runner(t, alone, "behind"), runner(t, c.Nodes[0], "before")}
	job := async(t, c.Nodes[2], "test.arg", "meanwhile")
	inCache(t, c, c.Nodes[2], job, time.Minute)
	tokens := []string{before, makeToken(t, c.Nodes[0], id)}
	targets := news(t, c, "partition")
	labtest.Must(t, c.Lab.Heal(ctx))
	healed = true
	labtest.Must(t, alone.Daemon.Serving(ctx, 2*time.Minute))
	agree(t, c, targets, "partition", append(jids, job)...)
	tokensWork(t, c, id, tokens)
}

// A key that is deleted while a node is down: nothing of that minion is left on it when it is back, nor comes from it.
func testDataPurgeDown(t *testing.T, c *lab.Cluster) {
	ctx, id, down := t.Context(), "gone-meanwhile", c.Nodes[2]
	m, err := c.Minions[0].Host().NewMinion(lab.Versions[0], id, c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	defer func() { _ = m.Kill() }()
	keyIs(t, c, id, "minions_pre", time.Minute)
	key := func(n *lab.Node, option string) {
		res, err := n.Master.Run(ctx, "salt-key", "-y", option, id)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
	}
	key(c.Nodes[0], "-a")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "data of "+id+" on "+n.Name, func(context.Context) error {
			if len(cacheFiles(n, id)) == 0 {
				return errors.New("none")
			}
			return nil
		}))
	}
	labtest.Must(t, told(ctx, m, "gone"))
	labtest.Must(t, m.Stop(ctx)) // it would sign in again
	labtest.Must(t, down.Daemon.Kill())
	key(c.Nodes[0], "-d")
	none := func(n *lab.Node) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, dataWithin, "no data of "+id+" on "+n.Name, func(context.Context) error {
			if left := cacheFiles(n, id); len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		}))
	}
	for _, n := range c.Nodes[:2] {
		none(n)
	}
	labtest.Must(t, down.Daemon.Start(ctx))
	labtest.Must(t, down.Daemon.Serving(ctx, 2*time.Minute))
	keyIs(t, c, id, "", time.Minute)
	for _, n := range c.Nodes {
		none(n)
	}
	sameEverywhere(t, askedWithin, c.Nodes, append(targetsOf(c), target{"grain", "id:" + id, []string{}}), "lab_mine",
		false)
}

// What a power loss leaves of returns on one node is no return, and comes from the others: the master's own code says
// the same again.
func testDataPowerLoss(t *testing.T, c *lab.Cluster) {
	ctx, hit := t.Context(), c.Nodes[1]
	var jids []string
	for _, n := range c.Nodes {
		jids = append(jids, async(t, n, "test.arg", "power", n.Name))
	}
	for _, jid := range jids {
		for _, n := range c.Nodes {
			inCache(t, c, n, jid, time.Minute)
		}
	}
	before := sameJobs(t, askedWithin, c.Nodes, jids...)
	labtest.Must(t, hit.Daemon.Kill())
	labtest.Must(t, hit.Master.Kill())
	for _, path := range returnsUnder(t, hit, jids) {
		labtest.Must(t, os.Remove(path)) // it may be another's, by another name
		labtest.Must(t, os.WriteFile(path, nil, 0o644))
	}
	labtest.Must(t, hit.Master.Start(ctx))
	labtest.Must(t, hit.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, hit.Daemon.Start(ctx))
	labtest.Must(t, hit.Daemon.Serving(ctx, 2*time.Minute))
	after := sameJobs(t, askedWithin, c.Nodes, jids...)
	for _, jid := range jids {
		if was, is := text(before[jid]), text(after[jid]); was != is {
			t.Errorf("%s: %s, it was %s", jid, is, was)
		}
	}
}

// returnsUnder lists the files of a node's master with the returns of jobs.
func returnsUnder(t *testing.T, n *lab.Node, jids []string) (paths []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "jobs", "*", "*", "*", "return.p"))
	labtest.Must(t, err)
	for _, path := range found {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "jid"))
		labtest.Must(t, err)
		for _, jid := range jids {
			if string(raw) == jid {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) < len(jids) {
		t.Fatalf("%d returns of %d jobs", len(paths), len(jids))
	}
	return paths
}
