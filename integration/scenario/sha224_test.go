//go:build integration

package scenario

import (
	"os"
	"slices"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// TestSHA224: minions as hosts in FIPS mode have them, whose RSA is with SHA-224 only, beside usual ones in one cluster
// behind HAProxy. A minion opens nothing that was encrypted for it in the other way, so an answer is proof of its own.
// "make test-sha224".
func TestSHA224(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-sha224; TestWire has the options")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]},
		// Masters sign what they publish in one way, for all minions.
		MasterSettings: lab.Settings{
			"timeout": 20, "gather_job_timeout": 20, "publish_signing_algorithm": saltcrypt.PKCS1v15SHA224,
		},
		DaemonSettings: metricsForAll,
	})
	labtest.Must(t, err)
	h, err := l.Host(ctx, "min")
	labtest.Must(t, err)
	for _, v := range lab.Versions {
		for kind, settings := range map[string]lab.Settings{
			"usual": {},
			"sha224": {
				"fips_mode": true, "encryption_algorithm": saltcrypt.OAEPSHA224, "signing_algorithm": saltcrypt.PKCS1v15SHA224,
			},
		} {
			m, err := h.NewMinion(v, "min"+v[2:4]+"-"+kind, c.LB.Host().Addr, settings)
			labtest.Must(t, err)
			c.Minions = append(c.Minions, m)
		}
	}
	labtest.Must(t, c.Up(ctx))
	python := needPython(t, c)
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"jobs, pillars and files", testWireOptions},
		{"states", testSHA224States},
		{"keys are rotated", testSHA224Rotated},
		{"jobs, pillars and files with the new keys", testWireOptions},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(60))
		}
	}
	if now := needPython(t, c); !slices.Equal(now, python) {
		t.Errorf("returns were left to Python: %v, before %v", now, python)
	}
}

// needPython counts the returns that the nodes did not take themselves.
func needPython(t *testing.T, c *lab.Cluster) (n []float64) {
	for _, node := range c.Nodes {
		n = append(n, outcomes(t, node, "needs_python"))
	}
	return n
}

// testSHA224States: pillars that states get are signed, and the files come in chunks.
func testSHA224States(t *testing.T, c *lab.Cluster) {
	for _, n := range c.Nodes {
		got, err := n.Master.Pub(t.Context(), "*", "state.apply", "demo")
		labtest.Must(t, err)
		for _, m := range c.Minions {
			check.NoError(t, m.CheckApplied(got[m.ID]), m.ID, "from", n.Name)
		}
	}
}

// testSHA224Rotated: each minion signs in again and gets the new key in its own way.
func testSHA224Rotated(t *testing.T, c *lab.Cluster) {
	before, rotated := acceptedSignIns(t, c), epochsBegun(t, c)
	testKeysRotated(t, c)
	testSHA224States(t, c)
	if n := epochsBegun(t, c) - rotated; n == 0 {
		t.Error("the cluster's AES key was not rotated")
	}
	n := acceptedSignIns(t, c) - before
	t.Logf("%v sign-ins of %d minions", n, len(c.Minions))
	if int(n) < len(c.Minions) {
		t.Errorf("%v sign-ins were accepted, of %d minions", n, len(c.Minions))
	}
}
