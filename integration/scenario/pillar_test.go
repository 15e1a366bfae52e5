//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

const (
	slowID      = "slow-"          // with these ids minions have a pillar that takes slowFor
	slowFor     = 18 * time.Second // longer than master_stuck_after
	slowPillars = 12               // more than the masters have workers
)

// The same for TestEdge, whose nodes wait for less.
const (
	slowForEdge     = 8 * time.Second
	slowPillarsEdge = 7
)

// TestPillars has masters with pillar_cache, and pillars that take long. TestEdge has a short form of its steps.
func TestPillars(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("pillars take 18 s each: make test-data")
	}
	renders := filepath.Join(t.TempDir(), "renders")
	testCluster(t, lab.Versions, withPillars(clusterMasters, renders, slowFor), []clusterStep{
		{name: "a cached pillar", test: testCachedPillar},
		{name: "slow pillars", test: func(t *testing.T, c *lab.Cluster) {
			all := testSlowPillars(t, c, renders, slowPillars)
			for _, m := range all {
				deleted(t, c.Nodes[0], m.id)
			}
			labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "all to answer", func(ctx context.Context) error {
				return lab.Answering(ctx, c.Nodes[0].Master, c.IDs()...)
			}))
		}},
	})
}

// withPillars adds pillar_cache to what masters have, and an external pillar that takes long for some minions and
// writes a line into a file each time.
func withPillars(s lab.Settings, renders string, slow time.Duration) lab.Settings {
	s = maps.Clone(s)
	s["pillar_cache"] = true
	s["nodegroups"] = map[string]any{"cached": "I@cached:*"}
	s["ext_pillar"] = []any{map[string]any{"cmd_yaml": fmt.Sprintf(
		"case %%s in %s*) echo %%s >>%s; sleep %.0f;; esac; echo 'external: %%s'", slowID, renders, slow.Seconds())}}
	return s
}

// refreshPillar edits the pillar on one node and has all minions refresh it by way of another.
func refreshPillar(t *testing.T, c *lab.Cluster, edited, by *lab.Node, value string) {
	t.Helper()
	path := func(n *lab.Node, name string) string {
		return filepath.Join(filepath.Dir(n.Master.FileRoot()), "pillar", name)
	}
	text := fmt.Sprintf("cached: %s\n", value)
	labtest.Must(t, os.WriteFile(path(edited, "cached.sls"), []byte(text), 0o644))
	labtest.Must(t, os.WriteFile(path(edited, "top.sls"), []byte("base:\n  '*':\n    - demo\n    - cached\n"), 0o644))
	onNodes(t, c.Nodes, "the pillar", func(n *lab.Node) error {
		got, err := os.ReadFile(path(n, "cached.sls"))
		if err == nil && string(got) != text {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
	rootsSettled(t, c)
	_, err := by.Master.Pub(t.Context(), "*", "saltutil.refresh_pillar", "wait=True")
	labtest.Must(t, err)
}

// hasPillar has a minion ask for its pillar; args say where.
func hasPillar(t *testing.T, m *lab.Minion, value string, args ...string) {
	// 3008 hides the values of pillars in what its functions return
	args = append(args, "cmd.run", "echo {{pillar.cached}}", "template=jinja", inShell)
	got, err := m.Call(t.Context(), args[0], args[1:]...)
	if err != nil || got != value {
		t.Errorf("%s has %v, not %q: %v", m.ID, got, value, err)
	}
}

// testPillarsBriefly is TestPillars with one minion: all nodes have its pillar cached when it changes, and each gives
// it the new one. Then minions are given pillars that take long.
func testPillarsBriefly(t *testing.T, c *lab.Cluster, renders string) {
	for i, value := range []string{"one", "two"} {
		refreshPillar(t, c, c.Nodes[i], c.Nodes[1-i], value)
		var asked sync.WaitGroup
		for _, n := range c.Nodes {
			asked.Go(func() { hasPillar(t, c.Minions[0], value, "--master="+n.Addr) })
		}
		asked.Wait()
	}
	for _, n := range c.Nodes {
		mustTarget(t, n, c.IDs(), "-I", "cached:two")
	}
	testSlowPillars(t, c, renders, slowPillarsEdge)
}

// With pillar_cache each ask through any node has the pillar of after the refresh, and all masters target by it.
func testCachedPillar(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for i, value := range []string{"one", "two"} {
		refreshPillar(t, c, c.Nodes[i], c.Nodes[2], value)
		var asked sync.WaitGroup
		for _, m := range c.Minions {
			asked.Go(func() {
				if _, err := m.Call(ctx, "mine.send", "lab_mine", "mine_function=test.echo", value); err != nil {
					t.Errorf("mine of %s: %v", m.ID, err)
				}
				for range c.Nodes { // each call asks anew, some node
					hasPillar(t, m, value)
				}
			})
		}
		asked.Wait()
		sameEverywhere(t, askedWithin, c.Nodes, append(targetsOf(c),
			target{"pillar", "cached:" + value, c.IDs()}, target{"pillar_pcre", "cached:^" + value + "$", c.IDs()},
			target{"compound", "J@cached:^" + value + " and I@demo:for:*", c.IDs()}), "lab_mine", false)
		for _, n := range c.Nodes { // as people ask it
			mustTarget(t, n, c.IDs(), "-J", "cached:^"+value)
			mustTarget(t, n, c.IDs(), "-I", "cached:"+value)
			mustTarget(t, n, c.IDs(), "-N", "cached")
		}
		findMineByPillar(t, c, value)
	}
}

// findMineByPillar wants every minion to find the mine of all of them by the cached pillar, at each master.
func findMineByPillar(t *testing.T, c *lab.Cluster, value string) {
	t.Helper()
	want := map[string]any{}
	for _, id := range c.IDs() {
		want[id] = value
	}
	var asked sync.WaitGroup
	for _, m := range c.Minions {
		asked.Go(func() {
			for _, n := range c.Nodes {
				got, err := m.Call(t.Context(), "--master="+n.Addr, "mine.get", "cached:"+value, "lab_mine", "tgt_type=pillar")
				if found, _ := got.(map[string]any); err != nil || !maps.Equal(found, want) {
					t.Errorf("%s at %s finds the mines %v, want %v: %v", m.ID, n.Name, got, want, err)
				}
			}
		})
	}
	asked.Wait()
}

// testSlowPillars: more pillars than there are workers, each of which takes longer than a master may stand still, are
// rendered once and reach their minions. It returns these, whose keys are accepted.
func testSlowPillars(t *testing.T, c *lab.Cluster, renders string, pillars int) (all []*byteMinion) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	for i := range pillars {
		all = append(all, &byteMinion{
			// the load balancer's host would have to say for whom it connects
			host: c.Minions[0].Host(), id: fmt.Sprint(slowID, i), key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
			pin: masterPub(t, c.Nodes[0].Master), within: 3 * time.Minute,
		})
	}
	admit(t, c, all...)
	var asked sync.WaitGroup
	for i, m := range all {
		at := c.Nodes[i%len(c.Nodes)]
		heard, err := m.signIn(t.Context(), at.Addr)
		if labtest.Must(t, err); heard != "accepted" {
			t.Fatalf("%s hears %q", m.id, heard)
		}
		asked.Go(func() {
			answer, _, err := m.request(t.Context(), at.Addr, "_pillar", map[string]any{
				"grains": map[string]any{"id": m.id}, "saltenv": "base", "pillarenv": nil, "pillar_override": map[string]any{},
				"extra_minion_data": map[string]any{}, "ver": "3",
			})
			if err != nil || len(answer) == 0 || slices.Equal(answer, saltwire.BadLoad()) {
				t.Errorf("the pillar of %s by %s: %.40q, %v", m.id, at.Name, answer, err)
			}
		})
	}
	asked.Wait()
	raw, err := os.ReadFile(renders)
	labtest.Must(t, err)
	if lines := strings.Fields(string(raw)); len(lines) != pillars {
		slices.Sort(lines)
		t.Errorf("%d pillars were rendered %d times: %v", pillars, len(lines), lines)
	}
	return all
}
