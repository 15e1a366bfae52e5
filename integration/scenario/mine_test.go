//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// What a minion puts into its mine is on every master when the minion is answered, whichever master is asked by whom.
func testMine(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	a, b := c.Minions[0], c.Minions[len(c.Minions)-1]
	before := answeredMines(t, c)
	want := map[string]any{}
	for i, m := range c.Minions {
		want[m.ID] = fmt.Sprint("value-", i)
		_, err := m.Call(ctx, "mine.send", "lab_mine", "mine_function=test.echo", fmt.Sprint("value-", i))
		labtest.Must(t, err)
		for _, n := range c.Nodes {
			if _, err := os.Stat(mineFile(n, m.ID)); err != nil {
				t.Errorf("%s was answered before %s had its mine: %v", m.ID, n.Name, err)
			}
		}
	}
	for _, n := range c.Nodes {
		mustMine(t, n, "lab_mine", want)
	}
	// Entries of different calls, which arrive at different nodes, do not displace each other.
	_, err := a.Call(ctx, "mine.send", "lab_secret", "mine_function=test.echo", "for-b", "allow_tgt="+b.ID)
	labtest.Must(t, err)
	for _, m := range c.Minions {
		got, err := m.Call(ctx, "mine.get", a.ID, "lab_secret")
		labtest.Must(t, err)
		found, _ := got.(map[string]any)
		if allowed := m.ID == b.ID; allowed != (found[a.ID] == "for-b") {
			t.Errorf("%s got %v of what %s allows %s only", m.ID, got, a.ID, b.ID)
		}
	}
	for _, m := range c.Minions {
		for _, tgt := range mineTargets { // whichever node it asks
			got, err := m.Call(ctx, "mine.get", append([]string{tgt[0], "lab_mine"}, tgt[1:]...)...)
			labtest.Must(t, err)
			if found, _ := got.(map[string]any); !maps.Equal(found, want) {
				t.Errorf("%s: mine.get %q is %v, want %v", m.ID, tgt, got, want)
			}
		}
	}
	_, err = b.Call(ctx, "mine.delete", "lab_mine")
	labtest.Must(t, err)
	delete(want, b.ID)
	for _, n := range c.Nodes {
		mustMine(t, n, "lab_mine", want)
	}
	_, err = a.Call(ctx, "mine.flush")
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		if _, err := os.Stat(mineFile(n, a.ID)); !os.IsNotExist(err) {
			t.Errorf("%s still has the mine of %s: %v", n.Name, a.ID, err)
		}
	}
	for cmd, least := range map[string]int{"_mine": len(c.Minions) + 1,
		"_mine_get": len(c.Minions) * (1 + len(mineTargets)), "_mine_delete": 1, "_mine_flush": 1} {
		if n := answeredMines(t, c)[cmd] - before[cmd]; n < float64(least) {
			t.Errorf("%v requests %s were answered without the masters' Python, of %d", n, cmd, least)
		}
	}
	// What an operator clears is found by the next scan; testMineCleared looks whether it was.
	res, err := c.Nodes[0].Master.Run(ctx, "salt-run", "cache.clear_mine", "tgt="+b.ID)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	// What is sent after it was cleared stays, whichever master has seen what: the same as before, too.
	for _, n := range c.Nodes {
		send := func() {
			_, err := a.Call(ctx, "mine.send", "lab_again", "mine_function=test.echo", "the same")
			labtest.Must(t, err)
		}
		send()
		res, err := n.Master.Run(ctx, "salt-run", "cache.clear_mine", "tgt="+a.ID)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		if _, err := os.Stat(mineFile(n, a.ID)); !os.IsNotExist(err) {
			t.Errorf("%s has not cleared the mine of %s: %v", n.Name, a.ID, err)
		}
		send()
		for _, n := range c.Nodes {
			if _, err := os.Stat(mineFile(n, a.ID)); err != nil {
				t.Errorf("%s: the mine of %s, which was sent after it was cleared: %v", n.Name, a.ID, err)
			}
		}
	}
}

// mineTargets are ways to ask for the mines of all minions that need no Python.
var mineTargets = [][]string{{"*"}, {"[!z]*", "tgt_type=glob"}}

// answeredMines counts what all nodes have answered without their masters' Python, by command.
func answeredMines(t *testing.T, c *lab.Cluster) map[string]float64 {
	t.Helper()
	sum := map[string]float64{}
	for _, cmd := range []string{"_mine", "_mine_get", "_mine_delete", "_mine_flush"} {
		for _, n := range c.Nodes {
			sum[cmd] += metric(t, n, func(line string) bool {
				return strings.HasPrefix(line, `saltcluster_minion_mine_requests_total{command="`+cmd+`",outcome="answered"`)
			})
		}
	}
	return sum
}

// The mine that testMine had cleared on one master is on none, and the one that was sent again on all.
func testMineCleared(t *testing.T, c *lab.Cluster) {
	id := c.Minions[len(c.Minions)-1].ID
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "mine of "+id+" cleared on "+n.Name,
			func(context.Context) error {
				if _, err := os.Stat(mineFile(n, id)); !os.IsNotExist(err) {
					return errors.New("it is still there")
				}
				return nil
			}))
	}
	for _, n := range c.Nodes {
		if _, err := os.Stat(mineFile(n, c.Minions[0].ID)); err != nil {
			t.Errorf("%s: the mine of %s, which was sent after it was cleared: %v", n.Name, c.Minions[0].ID, err)
		}
	}
}

// mineFile is where a master of its version keeps a minion's mine.
func mineFile(n *lab.Node, id string) string {
	name := "minions/" + id + "/mine.p"
	if n.Master.Version >= "3008" {
		name = "mine/" + id + ".p"
	}
	return filepath.Join(n.Master.CacheDir(), name)
}

// mustMine asks a master for a function in the mines of all minions.
func mustMine(t *testing.T, n *lab.Node, fun string, want map[string]any) {
	t.Helper()
	res, err := n.Master.Run(t.Context(), "salt-run", "--out=json", "-l", "quiet", "mine.get", "*", fun)
	labtest.Must(t, err)
	var got map[string]any
	if err := json.Unmarshal([]byte(res.Stdout), &got); err != nil {
		t.Fatalf("%s: %v\n%s", n.Name, err, res.Output())
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %s is %v, want %v", n.Name, fun, got, want)
	}
}
