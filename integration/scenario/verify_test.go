//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// verify finds no difference in a cluster at rest, finds what somebody changed behind our back, and nothing when that is
// over.
func testVerify(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	first, last := c.Nodes[0], c.Nodes[len(c.Nodes)-1]
	same := func(n *lab.Node) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "no difference seen by "+n.Name, func(ctx context.Context) error {
			v, code, err := verify(ctx, n)
			if err == nil && code != 0 {
				err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
			}
			return err
		}))
	}
	for _, n := range c.Nodes {
		same(n)
	}
	v, _, err := verify(ctx, first)
	labtest.Must(t, err)
	for _, s := range v.Sections {
		if s.Name != "tokens" && s.Name != "mine" && s.Name != "roots" && s.Items < len(c.Minions) {
			t.Errorf("%s: %d items", s.Name, s.Items)
		}
	}
	id := c.Minions[1].ID
	file := mineFile(last, id)
	raw, err := os.ReadFile(file)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the difference", func(ctx context.Context) error {
		// Unless the scan has just found it, and made it the mine of all nodes.
		if err := os.WriteFile(file, fmt.Appendf(nil, "\x81\xa1f\xa1%d", time.Now().Unix()%10), 0o600); err != nil {
			return err
		}
		v, code, err := verify(ctx, first)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == "mine" })
		if d := v.Sections[i].Differences; code != 10 || len(d) != 1 || d[0].Item != id || d[0].Nodes[last.Name] == d[0].Nodes[first.Name] {
			return fmt.Errorf("exit code %d: %+v", code, v.Sections[i])
		}
		return nil
	}))
	labtest.Must(t, os.WriteFile(file, raw, 0o600))
	same(last)
}

func verify(ctx context.Context, n *lab.Node) (v adminapi.Verification, code int, err error) {
	res, err := n.Daemon.Ctl(ctx, "verify", "--out", "json")
	if err == nil {
		err = json.Unmarshal([]byte(res.Stdout), &v)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, res.Output())
	}
	return v, res.Code, err
}
