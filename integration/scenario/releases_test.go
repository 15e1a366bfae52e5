//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// TestReleases runs the steps of all TestCluster tests with older releases of each line, whose buses and session keys
// differ from those of the newest, and then with masters that become the newest and older again. "make test-releases".
func TestReleases(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("older releases of Salt: make test-releases")
	}
	testCluster(t, lab.Older, clusterMasters, slices.Concat(
		[]clusterStep{{name: "keys are rotated", test: testKeysRotated}},
		eventSteps, dataSteps, rootsSteps, keySteps, jobSteps, faultSteps,
		// Its reactor counts returns from then on, in a file that other steps want to be left alone.
		[]clusterStep{{name: "masters change their releases", test: testReleasesChange}, removalStep},
	))
}

// The cluster's AES key and with it all session keys become others: minions answer every master throughout.
func testKeysRotated(t *testing.T, c *lab.Cluster) {
	for _, n := range c.Nodes {
		stop := pinging(t.Context(), n, c.IDs())
		must(t, n.Daemon, "rotate", "aes", "--yes")
		for _, from := range c.Nodes {
			labtest.Must(t, c.Answering(t.Context(), from))
			got, err := from.Master.Pub(t.Context(), "*", "state.apply", "demo")
			labtest.Must(t, err)
			labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		}
		rounds, failures := stop()
		t.Logf("%d rounds of test.ping from %s", rounds, n.Name)
		if len(failures) > 0 {
			t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
		}
	}
}

// Each master becomes the newest release of its line and older again, killed in the middle of a job: its reactor hears
// of each return, once, whatever its bus takes and did take before. A token stays good, also where a release sweeps all
// tokens away as it starts (3008.1).
func testReleasesChange(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	kept := makeToken(t, c.Nodes[0], c.Minions[0].ID)
	for i, n := range c.Nodes {
		for _, version := range []string{lab.Versions[i], lab.Older[i]} {
			jid := async(t, n, "cmd.run", "sleep 3; echo done", inShell)
			labtest.Must(t, n.Master.Kill())
			labtest.Must(t, n.Master.ChangeVersion(version))
			labtest.Must(t, countReactionsOn(n, clusterMasters, "salt/job/*/ret/*"))
			inCache(t, c, n, jid, time.Minute)
			labtest.Must(t, n.Master.Start(ctx))
			labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
			drained(t, n, time.Minute)
			heard := func(context.Context) error {
				runs, err := counted(c)
				if err != nil {
					return err
				}
				for _, id := range c.IDs() {
					if times := runs[n.Name]["salt/job/"+jid+"/ret/"+id]; times != 1 {
						return fmt.Errorf("Salt %s heard %d times of the return of %s", version, times, id)
					}
				}
				return nil
			}
			labtest.Must(t, lab.Eventually(ctx, time.Minute, "the returns' events", heard))
			labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "Salt "+version+" to be noticed",
				func(ctx context.Context) error {
					all, err := n.Daemon.Members(ctx)
					if err != nil {
						return err
					}
					for _, m := range all.Members {
						if m.ID == n.Name && m.SaltVersion != version {
							return fmt.Errorf("%s is said to run Salt %s", m.ID, m.SaltVersion)
						}
					}
					return nil
				}))
			labtest.Must(t, c.Whole(ctx, 2*time.Minute))
			labtest.Must(t, c.Answering(ctx, n))
			labtest.Must(t, heard(ctx))
			onNodes(t, c.Nodes, "the token", func(n *lab.Node) error { return tokenFiles(n, []string{kept}, 1) })
		}
	}
}
