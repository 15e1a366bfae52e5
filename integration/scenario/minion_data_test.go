//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// dataWithin is how long masters may take to know what one of them was told. It is less than the time between two scans
// of a cache: what is told is carried at once.
const dataWithin = 30 * time.Second

// Grains and pillars that one master has cached target minions on every master, whichever version it has.
func testMinionData(t *testing.T, c *lab.Cluster) {
	one := c.Minions[0]
	for _, n := range c.Nodes {
		mustTarget(t, n, c.IDs(), "-G", "os:*")
		mustTarget(t, n, c.IDs(), "-I", "demo:for:*")
		mustTarget(t, n, []string{one.ID}, "-I", "demo:for:"+one.ID)
		mustTarget(t, n, []string{one.ID}, "-C", "G@id:"+one.ID+" and I@demo:for:*")
		got, err := n.Master.Pub(t.Context(), "-G", "os:*", "test.ping")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		got, err = n.Master.Pub(t.Context(), "-I", "demo:for:"+one.ID, "test.ping")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, one.ID))
	}
	for i, m := range c.Minions {
		value := fmt.Sprint("value", i)
		_, err := m.Call(t.Context(), "grains.setval", "lab_data", value)
		labtest.Must(t, err)
		_, err = m.Call(t.Context(), "pillar.items") // hands the grains to one master
		labtest.Must(t, err)
		for _, n := range c.Nodes {
			mustTarget(t, n, []string{m.ID}, "-G", "lab_data:"+value)
		}
	}
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
