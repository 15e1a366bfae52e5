//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// publishWithID publishes test.arg under an id when a file is there.
const publishWithID = `
import os, sys, time
import salt.client
client = salt.client.LocalClient(sys.argv[1])
open(sys.argv[2] + "." + sys.argv[4], "w").close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
client.run_job("*", "test.arg", [sys.argv[4]], jid=sys.argv[3])
`

// Two masters give two jobs one id. Each minion runs one of them, which the job cache of its publisher has and the
// other one's has not, and status names the id. On a busy machine one of them may publish so much later that returns
// have been copied by then: then they try again.
func testSameID(t *testing.T, c *lab.Cluster) {
	both := []*lab.Node{c.Nodes[0], c.Nodes[2]}
	var jid, mixed string
	for range 5 {
		if jid, mixed = publishSameID(t, c, both); mixed == "" {
			break
		}
		t.Log(mixed)
	}
	if mixed != "" {
		t.Error(mixed)
	}
	says(t, both[0].Daemon, []string{"gave the id " + jid + " to two different jobs"}, "status")
	says(t, both[1].Daemon, []string{"gave the id " + jid + " to two different jobs"}, "doctor")
}

// publishSameID has two masters publish under one id at once. mixed says what a job cache has that it must not have.
func publishSameID(t *testing.T, c *lab.Cluster, both []*lab.Node) (jid, mixed string) {
	t.Helper()
	ctx, begin := t.Context(), filepath.Join(t.TempDir(), "begin")
	jid = strings.ReplaceAll(time.Now().UTC().Format("20060102150405.000000"), ".", "")
	done := make(chan error, len(both))
	for _, n := range both {
		go func() {
			res, err := n.Master.Run(ctx, "python", "-c", publishWithID, n.Master.ConfigDir+"/master", begin, jid, n.Name)
			if err == nil {
				err = res.Err()
			}
			done <- err
		}()
	}
	for _, n := range both {
		eventually(t, time.Minute, n.Name+" to be ready to publish", func() bool {
			_, err := os.Stat(begin + "." + n.Name)
			return err == nil
		})
	}
	labtest.Must(t, os.WriteFile(begin, nil, 0o600))
	for range both {
		labtest.Must(t, <-done)
	}
	ran := map[string]string{} // by minion, whose job
	returned := func(ctx context.Context) error {
		clear(ran)
		mixed = ""
		for _, n := range both {
			found, err := cached(ctx, n, jid)
			if err != nil {
				return err
			}
			for id, ret := range found {
				if strings.Contains(fmt.Sprint(ret), n.Name) {
					ran[id] += n.Name
				} else {
					mixed = fmt.Sprintf("%s has in its job cache what it did not publish: %s of %s", n.Name, ret, id)
				}
			}
		}
		if len(ran) < len(c.Minions) {
			return fmt.Errorf("only these have: %v", ran)
		}
		return nil
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "all minions to return "+jid, returned))
	for i, n := range both { // when the copies of a later job have come, those of this one would have
		inCache(t, c, both[1-i], async(t, n, "test.ping"), time.Minute)
	}
	labtest.Must(t, returned(ctx))
	t.Logf("minions ran the job of: %v", ran)
	for id, of := range ran {
		if of != both[0].Name && of != both[1].Name {
			t.Errorf("%s ran both jobs", id)
		}
	}
	return jid, mixed
}
