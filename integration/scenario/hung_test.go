//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// A salt-master is stopped whole, as with its virtual machine.
func testMasterPaused(t *testing.T, c *lab.Cluster) {
	node := c.Nodes[1]
	testMasterStandsStill(t, c, "silent", node.Master.Pause, node.Master.Resume)
}

// All workers of a salt-master hang: it takes connections and answers PINGs, and nothing else.
func testWorkersHang(t *testing.T, c *lab.Cluster) {
	node := c.Nodes[1]
	each := func(sig syscall.Signal) func() error {
		return func() error {
			n, err := node.Master.SignalTitled(sig, "MWorker-")
			if err == nil && n == 0 {
				err = errors.New("no worker found")
			}
			return err
		}
	}
	testMasterStandsStill(t, c, "stuck", each(syscall.SIGSTOP), each(syscall.SIGCONT))
}

const pillars = 3 // rounds of pillar.items while a master stands still

// While a salt-master stands still its minions are served through another one, and nobody signs in again. What its own
// command line wanted meanwhile is done when it goes on.
func testMasterStandsStill(t *testing.T, c *lab.Cluster, sign string, stop, resume func() error) {
	ctx := t.Context()
	node := c.Nodes[1]
	labtest.Must(t, c.Answering(ctx, node))
	// A minion that has reconnected since its start signs in for each job that asks for its pillar, whoever serves it.
	before := acceptedSignIns(t, c)
	_, err := c.Nodes[0].Master.Pub(ctx, "*", "pillar.items")
	labtest.Must(t, err)
	usual := pillars * (acceptedSignIns(t, c) - before)
	marks, signIns := logSizes(t, c), acceptedSignIns(t, c)
	pinged := pinging(ctx, c.Nodes[0], c.IDs())
	began := time.Now()
	labtest.Must(t, stop())
	up := func(want float64) func(context.Context) error {
		return func(context.Context) error {
			if got := metricSum(t, node, "saltcluster_master_up"); got != want {
				return fmt.Errorf("saltcluster_master_up is %v", got)
			}
			return nil
		}
	}
	err = lab.Eventually(ctx, 30*time.Second, "the master to be seen standing still", up(0))
	t.Logf("noticed after %s", time.Since(began).Round(time.Millisecond))
	if err == nil && metricSum(t, node, "saltcluster_master_stalls_total", `sign="`+sign+`"`) == 0 {
		err = fmt.Errorf("not counted as %s", sign)
	}
	ownCLI := make(chan error, 1)
	if err == nil {
		for range pillars {
			var got map[string]any
			if got, err = c.Nodes[0].Master.Pub(ctx, "*", "pillar.items"); err == nil {
				err = lab.AnsweredBy(got, c.IDs()...)
			}
			if err != nil {
				break
			}
		}
		go func() {
			got, err := node.Master.Pub(ctx, "*", "test.ping", "--timeout=30")
			if err == nil {
				err = lab.AnsweredBy(got, c.IDs()...)
			}
			ownCLI <- err
		}()
	}
	awake := time.Now()
	labtest.Must(t, resume())
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(ctx, 20*time.Second, "the master to be used again", up(1)))
	t.Logf("used again after %s", time.Since(awake).Round(time.Millisecond))
	check.NoError(t, <-ownCLI, "its own command line")
	labtest.Must(t, c.Answering(ctx, node))
	rounds, failures := pinged()
	t.Logf("%d rounds of test.ping from %s", rounds, c.Nodes[0].Name)
	if len(failures) > 0 {
		t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
	}
	if n := acceptedSignIns(t, c) - signIns; n > usual {
		t.Errorf("%v sign-ins instead of %v", n, usual)
	}
	quietLogs(t, c, marks)
}
