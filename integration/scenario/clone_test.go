//go:build integration

package scenario

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// Two hosts have the id and the key of one minion, as after a machine was cloned. The node that has published a job
// says what a stock master logs of the second return when it differs from the first, and status names the minion.
func testClone(t *testing.T, c *lab.Cluster) {
	ctx, m, n := t.Context(), c.Minions[0], c.Nodes[0]
	clone, err := c.LB.Host().NewMinion(m.Version, m.ID, c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, os.MkdirAll(clone.PKIDir(), 0o700))
	for _, name := range []string{"minion.pem", "minion.pub", "minion_master.pub"} {
		raw, err := os.ReadFile(filepath.Join(m.PKIDir(), name))
		labtest.Must(t, err)
		labtest.Must(t, os.WriteFile(filepath.Join(clone.PKIDir(), name), raw, 0o400))
	}
	labtest.Must(t, clone.Start(ctx))
	defer func() { _ = clone.Kill() }()
	begins := "Duplicate return from minion " + m.ID + " for jid "
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "both to return a job", func(context.Context) error {
		async(t, n, "grains.get", "lab_dir") // the directory of the one that returns it
		if !n.Daemon.Logged(begins) {
			return errors.New("the log of " + n.Name + " does not have " + begins)
		}
		return nil
	}))
	says(t, n.Daemon, []string{"two returns of one minion for one job differed", m.ID + " (job ", "share one id and key"},
		"status")
	labtest.Must(t, clone.Kill())
	labtest.Must(t, c.Answering(ctx, n))
	for _, other := range c.IDs()[1:] {
		if strings.Contains(n.Daemon.Tail(10_000), "Duplicate return from minion "+other) {
			t.Errorf("%s is said to have a clone", other)
		}
	}
}
