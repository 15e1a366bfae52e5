//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// dataWithin is how long masters may take to know what one of them was told. It is less than the time between two scans
// of a cache: what is told is carried at once.
const dataWithin = 30 * time.Second

// askedWithin is the same where each look loads Salt on three masters and asks dozens of questions; mustTarget is
// strict about the time.
const askedWithin = 2 * time.Minute

// Grains and pillars that one master has cached target minions on every master, whichever version it has, and all of
// them say the same when they are asked what they know of their minions.
func testMinionData(t *testing.T, c *lab.Cluster) {
	one := c.Minions[0]
	sameEverywhere(t, askedWithin, c.Nodes, targetsOf(c), "lab_mine", false)
	for _, n := range c.Nodes { // as people ask it
		mustTarget(t, n, []string{one.ID}, "-C", "G@id:"+one.ID+" and I@demo:for:*")
		got, err := n.Master.Pub(t.Context(), "-G", "os:*", "test.ping")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		got, err = n.Master.Pub(t.Context(), "-I", "demo:for:"+one.ID, "test.ping")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, one.ID))
	}
	var targets []target
	for i, m := range c.Minions {
		value := fmt.Sprint("value", i)
		_, err := m.Call(t.Context(), "grains.setval", "lab_data", value)
		labtest.Must(t, err)
		_, err = m.Call(t.Context(), "pillar.items") // hands the grains to one master
		labtest.Must(t, err)
		_, err = m.Call(t.Context(), "mine.send", "lab_mine", "mine_function=test.echo", value)
		labtest.Must(t, err)
		targets = append(targets, target{"grain", "lab_data:" + value, []string{m.ID}})
	}
	said := sameEverywhere(t, askedWithin, c.Nodes, targets, "lab_mine", true)
	for i, m := range c.Minions {
		value := fmt.Sprint("value", i)
		for question, want := range map[string]string{
			"cache.grains": value, "cache.pillar": m.ID, "cache.mine": value, "mine.get": value, "manage.status": m.ID,
			"cache.grains by grain": m.ID,
		} {
			check.Contains(t, said[question], want, question)
		}
	}
	check.Contains(t, said["manage.status"], `"down": []`, "manage.status")
	_, err := c.Nodes[0].Master.Pub(t.Context(), "*", "mine.flush") // testMine begins without
	labtest.Must(t, err)
}

// The data of a minion go on every master when its key is deleted on one.
func testMinionDataPurge(t *testing.T, c *lab.Cluster) {
	ctx, id := t.Context(), "passer-by"
	m, err := c.Minions[0].Host().NewMinion(lab.Versions[0], id, c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	defer func() { _ = m.Kill() }()
	keyIs(t, c, id, "minions_pre", time.Minute)
	key := func(n *lab.Node, option, state string) {
		res, err := n.Master.Run(ctx, "salt-key", "-y", option, id)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, id, state, 10*time.Second)
	}
	key(c.Nodes[0], "-a", "minions")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "data of "+id+" on "+n.Name, func(context.Context) error {
			if len(cacheFiles(n, id)) == 0 {
				return errors.New("none")
			}
			return nil
		}))
	}
	labtest.Must(t, m.Stop(ctx)) // it would sign in again
	key(c.Nodes[len(c.Nodes)-1], "-d", "")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, dataWithin, "no data of "+id+" on "+n.Name, func(context.Context) error {
			if left := cacheFiles(n, id); len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		}))
	}
}

// cacheFiles lists what a master has cached of a minion, in the layouts of all versions.
func cacheFiles(n *lab.Node, id string) (there []string) {
	for _, name := range []string{"minions/" + id + "/data.p", "grains/" + id + ".p", "pillar/" + id + ".p"} {
		if _, err := os.Stat(filepath.Join(n.Master.CacheDir(), name)); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// mustTarget waits until a master takes exactly the ids for what a target means.
func mustTarget(t *testing.T, n *lab.Node, ids []string, how, tgt string) {
	t.Helper()
	want := slices.Sorted(slices.Values(ids))
	what := fmt.Sprintf("salt %s %s on %s", how, tgt, n.Name)
	labtest.Must(t, lab.Eventually(t.Context(), dataWithin, what, func(ctx context.Context) error {
		res, err := n.Master.Run(ctx, "salt", "--preview-target", "--out=json", "-l", "quiet", how, tgt)
		if err != nil {
			return err
		}
		var got []string
		if err := json.Unmarshal([]byte(res.Stdout), &got); err != nil {
			return fmt.Errorf("%w\n%s", err, res.Output())
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("%v", got)
		}
		return nil
	}))
}
