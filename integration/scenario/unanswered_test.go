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
	"saltclusterd/sidecar/adminapi"
)

// hangingReturner is a master's job cache which, while a file is there, waits for ever with what one minion returns of
// test.arg: as a database does that does not answer. Who has waited stores nothing.
const hangingReturner = `
import os, time
import salt.returners.local_cache as local

def __init__(opts):
    local.__opts__ = opts

def _as(name):
    def function(*args, **kwargs):
        return getattr(local, name)(*args, **kwargs)
    return function

for _name in ("prep_jid", "save_load", "save_minions", "get_load", "get_jid", "get_jids", "get_jids_filter", "clean_old_jobs",
              "update_endtime", "get_endtime"):
    globals()[_name] = _as(_name)

def returner(load):
    hung = False
    while load.get("fun") == "test.arg" and load["id"] == %[1]q and os.path.exists(%[2]q):
        hung = True
        time.sleep(0.1)
    if hung:
        raise RuntimeError("the database has gone away")
    return local.returner(load)
`

// A return that the master's Python never answers holds up no other one. It is shown, and an operator has it given
// again, or drops it.
func testReturnerHangs(t *testing.T, c *lab.Cluster) {
	ctx, n, victim := t.Context(), c.Nodes[0], c.Minions[1].ID
	marker := filepath.Join(n.Master.CacheDir(), "hang")
	module := filepath.Join(n.Master.CacheDir(), "extmods/returners/hanging.py")
	labtest.Must(t, os.MkdirAll(filepath.Dir(module), 0o755))
	labtest.Must(t, os.WriteFile(module, fmt.Appendf(nil, hangingReturner, victim, marker), 0o644))
	startAnew(t, c, n, lab.Settings{"master_job_cache": "hanging", "worker_threads": 6})
	defer startAnew(t, c, n, nil)
	defer os.Remove(marker)

	// aside publishes a job whose return of the victim the master does not answer, and waits until it has been put aside.
	aside := func() adminapi.UnansweredReturn {
		t.Helper()
		labtest.Must(t, os.WriteFile(marker, nil, 0o644))
		jid := async(t, n, "test.arg", "one")
		var list adminapi.UnansweredReturns
		labtest.Must(t, lab.Eventually(ctx, 4*time.Minute, "the return to be put aside", func(ctx context.Context) error {
			if err := n.Daemon.CtlJSON(ctx, &list, "returns", "list"); err != nil {
				return err
			}
			if len(list.Returns) != 1 || list.Returns[0].JID != jid || list.Returns[0].Minion != victim {
				return fmt.Errorf("returns list: %+v", list)
			}
			return nil
		}))
		var others []string
		for _, id := range c.IDs() {
			if id != victim {
				others = append(others, id)
			}
		}
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the returns of the others", func(ctx context.Context) error {
			found, err := cached(ctx, n, jid)
			if err != nil {
				return err
			}
			return lab.AnsweredBy(found, others...)
		}))
		return list.Returns[0]
	}
	none := func() {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "nothing to be left aside", func(ctx context.Context) error {
			r, err := returnsOf(ctx, n)
			if err == nil && r.Unanswered != 0 {
				err = fmt.Errorf("%+v", r)
			}
			return err
		}))
	}

	first := aside()
	if res := ctl(t, n.Daemon, "status"); !strings.Contains(res.Stdout, "saltclusterctl returns list") {
		t.Errorf("status does not tell of a return that was put aside:\n%s", res.Stdout)
	}
	// a stock master gives each worker its share of the requests, also one that hangs: no job is whole before
	labtest.Must(t, os.Remove(marker))
	labtest.Must(t, c.Answering(ctx, n))
	must(t, n.Daemon, "returns", "retry")
	none()
	inCache(t, c, n, first.JID, time.Minute)

	second := aside()
	must(t, n.Daemon, "returns", "drop", "--yes", second.ID)
	none()
	labtest.Must(t, os.Remove(marker))
	found, err := cached(ctx, n, second.JID)
	labtest.Must(t, err)
	if found[victim] != nil {
		t.Errorf("what was dropped is in the job cache: %v", found)
	}
	labtest.Must(t, c.Answering(ctx, n))
}
