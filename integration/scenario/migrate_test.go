//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// Masters of all versions leave the file system that they share, while a job is published every second.
func TestMigrate(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-shared")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.Minions, spec.Shared, spec.MasterSettings = lab.Versions, true, clusterMasters
	c, err := l.NewCluster(ctx, spec)
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Configure(lab.Settings{
			"cluster_isolated_filesystem": false, "master_restart_command": []string{"touch", restartFile(n)},
		}))
	}
	labtest.Must(t, c.Up(ctx))
	for _, n := range c.Nodes { // asked for when they became members
		_ = os.Remove(restartFile(n))
	}
	restarts := restartWhenAsked(t, c)
	dryRun(t, c)
	before := asyncAtLast(t, c.Nodes[0], "before")
	inCache(t, c, c.Nodes[2], before, time.Minute)
	marks := logSizes(t, c)
	stop := publishing(t, c)

	killedGuide(t, c)
	t.Run("with one of them gone", func(t *testing.T) { testMixed(t, c) })
	t.Run("and back", func(t *testing.T) { testMigrateBack(t, c) })
	minionsNoticedNothing(t, c, marks)
	jids := stop()
	stop = publishing(t, c)
	t.Run("saltclusterd is killed in the middle", func(t *testing.T) { testKilledSwitch(t, c) })
	amid := stop() // minions that were connected to it may not have heard them
	stop = publishing(t, c)
	marks = logSizes(t, c)
	guideRest(t, c)
	jids = append(jids, stop()...)
	minionsNoticedNothing(t, c, marks)
	// for the way back, and for leaving again, perhaps repeated by who was killed
	if got := restarts() - len(c.Nodes); got < 2 || got > 3 {
		t.Errorf("%d restarts of salt-masters more than there are nodes", got)
	}
	labtest.Must(t, c.Share.Gone())
	t.Run("without the share", func(t *testing.T) {
		for _, n := range c.Nodes {
			labtest.Must(t, c.Answering(ctx, n))
		}
		said := sameJobs(t, 2*time.Minute, c.Nodes, slices.Concat(jids, amid, []string{before})...)
		for jid, answers := range said {
			if slices.Contains(amid, jid) {
				continue
			}
			if returned, ok := answers["lookup_jid"].(map[string]any); ok {
				for _, id := range c.IDs() {
					if _, ok := returned[id]; !ok {
						t.Errorf("returns of %s: none of %s", jid, id)
					}
				}
			}
		}
		t.Logf("%d jobs with all returns on every master, %d during the kill", len(jids), len(amid))
		testKeys(t, c)
		must(t, c.Nodes[0].Daemon, "verify")
		must(t, c.Nodes[0].Daemon, "status", "--check")
	})
	t.Run("with a key store then", func(t *testing.T) {
		back := useStore(t, c, c.Nodes[2])
		defer back()
		testKeys(t, c)
		must(t, c.Nodes[0].Daemon, "verify")
	})
}

// minionsNoticedNothing fails when a minion's log shows that it had to sign in again, or got no answer.
func minionsNoticedNothing(t *testing.T, c *lab.Cluster, marks map[string]int64) {
	t.Helper()
	for _, m := range c.Minions {
		for _, sign := range []string{"Authentication", "re-auth", "SaltReqTimeoutError", "Minion failed to auth"} {
			if strings.Contains(since(t, m, marks[m.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", m.ID, sign)
			}
		}
	}
}

func restartFile(n *lab.Node) string { return filepath.Join(n.Dir(), "restart-the-master") }

// restartWhenAsked does what systemctl would; it returns what counts the restarts.
func restartWhenAsked(t *testing.T, c *lab.Cluster) (count func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	restarts := 0
	for _, n := range c.Nodes {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := os.Remove(restartFile(n)); err == nil {
					mu.Lock()
					restarts++
					mu.Unlock()
					if err := errors.Join(n.Master.Stop(ctx), n.Master.Start(ctx)); err != nil && ctx.Err() == nil {
						t.Errorf("restart the salt-master of %s: %v", n.Name, err)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return restarts
	}
}

// publishing publishes a job about every second, from one node after the other; a node whose salt-master is being
// restarted is left out. stop returns the ids of the jobs.
func publishing(t *testing.T, c *lab.Cluster) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []string, 1)
	go func() {
		var jids []string
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			n := c.Nodes[i%len(c.Nodes)]
			res, err := n.Master.Run(ctx, "salt", "--async", "*", "test.arg", fmt.Sprint("n=", i))
			if jid := jidPrinted.FindString(res.Stdout); err == nil && jid != "" {
				jids = append(jids, jid)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		done <- jids
	}()
	return func() []string {
		cancel()
		return <-done
	}
}

// asyncAtLast publishes a job and returns its id; on a busy machine salt gives up before the master has answered it.
func asyncAtLast(t *testing.T, n *lab.Node, word string) (jid string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "a job of "+n.Name, func(ctx context.Context) error {
		res, err := n.Master.Run(ctx, "salt", "--async", "*", "test.arg", word)
		if jid = jidPrinted.FindString(res.Stdout); err == nil && jid == "" {
			err = errors.New(res.Output())
		}
		return err
	}))
	return jid
}

func migration(ctx context.Context, n *lab.Node) (m adminapi.Migration, err error) {
	err = n.Daemon.CtlJSON(ctx, &m, "migrate", "--status")
	return m, err
}

// stages lists how far the nodes are.
func stages(ctx context.Context, n *lab.Node) (map[string]string, error) {
	m, err := migration(ctx, n)
	out := map[string]string{}
	for _, node := range m.Nodes {
		out[node.Node] = node.Stage
	}
	return out, err
}

func dryRun(t *testing.T, c *lab.Cluster) {
	t.Helper()
	text := must(t, c.Nodes[1].Daemon, "migrate", "--dry-run").Stdout
	for _, n := range c.Nodes {
		for _, want := range []string{
			filepath.Join(n.Dir(), "var/lib/salt-master/pki"), filepath.Join(n.Dir(), "var/lib/salt-master/file_roots/base/0"),
			filepath.Join(n.Master.ConfigDir, "master.d/zzz-saltclusterd-isolated.conf"),
			filepath.Join(n.Master.CacheDir(), "jobs"),
			filepath.Join(n.Master.ConfigDir, "saltclusterd.d/zz-isolated.conf"),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing about %s in\n%s", want, text)
			}
		}
		if _, err := os.Stat(filepath.Join(n.Dir(), "var/lib/salt-master")); err == nil {
			t.Errorf("%s: something was done", n.Name)
		}
	}
}

// killedGuide kills saltclusterctl migrate while the first node switches over, and waits until that node has done so.
func killedGuide(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	ended := make(chan lab.Result, 1)
	go func() {
		res, _ := c.Nodes[1].Daemon.Ctl(ctx, "migrate", "--all", "--yes") // it is killed
		ended <- res
	}()
	first := c.Nodes[0].Name
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, first+" to switch over", func(ctx context.Context) error {
		all, err := stages(ctx, c.Nodes[1])
		if err == nil && all[first] != "switching" && all[first] != "isolated" {
			err = fmt.Errorf("%v", all)
		}
		return err
	}))
	kill()
	res := <-ended
	t.Logf("killed after:\n%s", res.Stderr)
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, first+" to have left the share",
		func(ctx context.Context) error {
			m, err := migration(ctx, c.Nodes[1])
			if err != nil {
				return err
			}
			i := slices.IndexFunc(m.Nodes, func(n adminapi.MigrateNode) bool { return n.Node == first })
			if i < 0 || m.Nodes[i].Stage != "isolated" || !m.Nodes[i].Caught {
				return fmt.Errorf("%+v", m.Nodes)
			}
			return nil
		}))
	c.Nodes[0].Master.MovedTo(filepath.Join(c.Nodes[0].Dir(), "var/lib/salt-master/pki"))
}

// testMixed: what is done on the share reaches the node that has left it, and the other way round.
func testMixed(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	gone, sharing := c.Nodes[0], c.Nodes[1]
	m, err := c.Minions[0].Host().NewMinion(lab.Versions[1], "between", c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	keyIs(t, c, "between", "minions_pre", time.Minute)
	for _, step := range []struct {
		on            *lab.Node
		option, state string
	}{{gone, "-a", "minions"}, {sharing, "-d", ""}} {
		if step.option == "-d" {
			labtest.Must(t, lab.Answering(ctx, gone.Master, append(c.IDs(), "between")...))
			labtest.Must(t, m.Kill()) // stopping takes long on a busy machine
		}
		res, err := step.on.Master.Run(ctx, "salt-key", "-y", step.option, "between")
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, "between", step.state, 15*time.Second)
	}
	own := filepath.Join(gone.Dir(), "var/lib/salt-master/file_roots/base/0")
	shared := filepath.Join(sharing.Dir(), "share/srv/salt")
	for _, way := range [][2]string{{own, shared}, {shared, own}} {
		name := "edited-in-" + filepath.Base(filepath.Dir(way[0]))
		labtest.Must(t, os.WriteFile(filepath.Join(way[0], name), []byte(way[0]), 0o644))
		labtest.Must(t, lab.Eventually(ctx, 30*time.Second, name+" in "+way[1], func(context.Context) error {
			text, err := os.ReadFile(filepath.Join(way[1], name))
			if err == nil && string(text) != way[0] {
				err = fmt.Errorf("%q", text)
			}
			return err
		}))
	}
	a := asyncAtLast(t, gone, "from the one that has left")
	b := asyncAtLast(t, sharing, "from one on the share")
	sameAnswers(t, time.Minute, c.Nodes, a, b)
}

// testMigrateBack lets the node that has left the share work there again.
func testMigrateBack(t *testing.T, c *lab.Cluster) {
	ctx, n := t.Context(), c.Nodes[0]
	must(t, c.Nodes[1].Daemon, "migrate", "--yes", "--back", c.Nodes[2].Name) // it has not left: nothing to be done
	res := must(t, c.Nodes[1].Daemon, "migrate", "--yes", "--back", n.Name)
	t.Log(res.Stderr)
	n.Master.MovedTo(filepath.Join(n.Dir(), "share/pki"))
	m, err := migration(ctx, c.Nodes[1])
	labtest.Must(t, err)
	for _, s := range m.Nodes {
		if !s.Shared {
			t.Errorf("%+v", s)
		}
	}
	for _, path := range []string{"master.d/zzz-saltclusterd-isolated.conf", "saltclusterd.d/zz-isolated.conf"} {
		if _, err := os.Stat(filepath.Join(n.Master.ConfigDir, path)); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if _, err := os.Readlink(filepath.Join(n.Master.CacheDir(), "jobs")); err != nil {
		t.Error(err)
	}
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
	jid := asyncAtLast(t, n, "back on the share")
	inCache(t, c, c.Nodes[2], jid, time.Minute)
	testKeys(t, c)
}

// testKilledSwitch kills saltclusterd of a node in the middle of its switch. It goes on by itself, or with the next
// try.
func testKilledSwitch(t *testing.T, c *lab.Cluster) {
	ctx, n, other := t.Context(), c.Nodes[0], c.Nodes[1]
	ended := make(chan lab.Result, 1)
	go func() {
		res, _ := other.Daemon.Ctl(ctx, "migrate", "--yes", n.Name)
		ended <- res
	}()
	labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, n.Name+" to switch over", func(ctx context.Context) error {
		all, err := stages(ctx, other)
		if err == nil && all[n.Name] != "switching" {
			err = fmt.Errorf("%v", all)
		}
		return err
	}))
	labtest.Must(t, n.Daemon.Kill())
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	res := <-ended
	t.Logf("the guide ended with %d:\n%s", res.Code, res.Stderr)
	if res.Code != 0 {
		t.Logf("again:\n%s", must(t, other.Daemon, "migrate", "--yes", n.Name).Stderr)
	}
	all, err := stages(ctx, other)
	labtest.Must(t, err)
	if all[n.Name] != "isolated" {
		t.Errorf("%v", all)
	}
	n.Master.MovedTo(filepath.Join(n.Dir(), "var/lib/salt-master/pki"))
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	labtest.Must(t, c.Answering(ctx, n))
}

// guideRest runs saltclusterctl migrate to its end, from a node that it migrates on the way.
func guideRest(t *testing.T, c *lab.Cluster) {
	t.Helper()
	start := time.Now()
	res := must(t, c.Nodes[1].Daemon, "migrate", "--all", "--yes")
	t.Logf("the rest took %s:\n%s\n%s", time.Since(start).Round(100*time.Millisecond), res.Stderr, res.Stdout)
	for _, n := range c.Nodes {
		n.Master.MovedTo(filepath.Join(n.Dir(), "var/lib/salt-master/pki"))
	}
	all, err := stages(t.Context(), c.Nodes[0])
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		if all[n.Name] != "isolated" {
			t.Errorf("%v", all)
		}
	}
}
