//go:build integration

package scenario

import (
	"testing"
	"time"

	"saltclusterd/integration/hostile"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/require"
)

// A minion with an accepted key says whatever it likes for a few seconds, the same things in each run: nothing but its
// own is touched, and nobody else notices. "make fuzz-live" does so for longer, with another seed each time.
func testHostileMinion(t *testing.T, c *lab.Cluster) {
	cfg := hostile.Default()
	cfg.Seed, cfg.For, cfg.Rate, cfg.Revoke = 20260101, 10*time.Second, 40, true
	report, err := hostile.Run(t.Context(), c, cfg)
	require.NoError(t, err)
	t.Log(report.Summary())
	for _, v := range report.Violations {
		t.Errorf("%s", v)
	}
}
