//go:build integration

package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// askJobs prints what Salt's own runner says of jobs; it needs no master. The modules are loaded once, not for each
// question.
const askJobs = `
import json, sys
import salt.config, salt.loader, salt.minion
opts = salt.config.master_config(sys.argv[1])
loaded = salt.minion.MasterMinion(opts)
salt.minion.MasterMinion = lambda *args, **kwargs: loaded
run = salt.loader.runner(opts)
jids = [jid for jid in sys.argv[2:] if jid != "last_run"]
said = {jid: {fun: run["jobs." + fun](jid) for fun in ("lookup_jid", "list_job", "print_job")} for jid in jids}
known = run["jobs.list_jobs"]()
for jid in jids:
    said[jid]["list_jobs"] = known.get(jid)
if "last_run" in sys.argv:
    said["last_run"] = {"test.arg": run["jobs.last_run"](function="test.arg")}
print(json.dumps(said, sort_keys=True, default=str))
`

// jobsOn is what a node's runner says of jobs.
func jobsOn(ctx context.Context, n *lab.Node, jids ...string) (map[string]map[string]any, error) {
	res, err := n.Master.Run(ctx, "python", append([]string{"-c", askJobs, n.Master.ConfigDir + "/master"}, jids...)...)
	if err == nil {
		err = res.Err()
	}
	var said map[string]map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(res.Stdout), &said)
	}
	return said, err
}

// text is an answer in words.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// sameJobs waits until all nodes say the same of jobs and of which was the last, and returns that.
func sameJobs(t *testing.T, within time.Duration, nodes []*lab.Node, jids ...string) (said map[string]map[string]any) {
	t.Helper()
	return sameAnswers(t, within, nodes, append(jids, lastRun)...)
}

// lastRun stands for the question which job was the last. Nobody gets one answer to it from all nodes while jobs are
// published.
const lastRun = "last_run"

// sameAnswers waits until all nodes say the same of jobs, and returns that.
func sameAnswers(t *testing.T, within time.Duration, nodes []*lab.Node,
	jids ...string) (said map[string]map[string]any) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, "the same answers on all masters",
		func(ctx context.Context) error {
			var err error
			if said, err = jobsOn(ctx, nodes[0], jids...); err != nil {
				return err
			}
			for _, n := range nodes[1:] {
				other, err := jobsOn(ctx, n, jids...)
				if err != nil {
					return err
				}
				for jid, answers := range said {
					for fun, answer := range answers {
						if a, b := text(answer), text(other[jid][fun]); a != b {
							return fmt.Errorf("%s of %s: %s says %s, %s says %s", fun, jid, nodes[0].Name, a, n.Name, b)
						}
					}
				}
			}
			return nil
		}))
	return said
}

// runner has a master run a runner function with that word, which no other job has, and returns the job id.
func runner(t *testing.T, n *lab.Node, word string) (jid string) {
	t.Helper()
	res, err := n.Master.Run(t.Context(), "salt-run", "test.arg", word)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	found, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "jobs", "*", "*", "*_master", "return.p"))
	labtest.Must(t, err)
	for _, path := range found {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), word) {
			raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "jid"))
			labtest.Must(t, err)
			return string(raw)
		}
	}
	t.Fatalf("no job of the runner on %s: %s", n.Name, res.Output())
	return ""
}

// Whatever was run on one master, all of them know it: with target, arguments and user, and runners' jobs too.
func testJobs(t *testing.T, c *lab.Cluster) {
	var jobs, runs []string
	for i, n := range c.Nodes {
		jid := async(t, n, "test.arg", "one", fmt.Sprint("two=", i))
		inCache(t, c, n, jid, time.Minute)
		jobs = append(jobs, jid)
		runs = append(runs, runner(t, n, fmt.Sprint("runs-on-", n.Name)))
	}
	said := sameJobs(t, 2*time.Minute, c.Nodes, append(jobs, runs...)...)
	for i, jid := range jobs {
		for _, want := range []string{`"test.arg"`, `"one"`, `"two":`, `"Target":"*"`, `"User":`, c.IDs()[0]} {
			if got := text(said[jid]["list_job"]); !strings.Contains(got, want) {
				t.Errorf("list_job of %s from %s lacks %s: %s", jid, c.Nodes[i].Name, want, got)
			}
		}
		got, _ := said[jid]["lookup_jid"].(map[string]any)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	}
	for i, jid := range runs {
		if got := text(said[jid]["lookup_jid"]); !strings.Contains(got, "_master") ||
			!strings.Contains(got, "runs-on-"+c.Nodes[i].Name) {
			t.Errorf("lookup_jid of the runner's %s from %s: %s", jid, c.Nodes[i].Name, got)
		}
	}
	check.Contains(t, text(said["last_run"]), "test.arg", "last_run")
	var list adminapi.JobList
	labtest.Must(t, c.Nodes[0].Daemon.CtlJSON(t.Context(), &list, "jobs", "list", "--n", "200"))
	for _, j := range list.Jobs {
		if j.JID == jobs[1] && (len(j.Nodes) != len(c.Nodes) || j.Function != "test.arg" || j.Returned != len(c.IDs())) {
			t.Errorf("jobs list: %+v", j)
		}
	}
	var job adminapi.Job
	labtest.Must(t, c.Nodes[2].Daemon.CtlJSON(t.Context(), &job, "jobs", "show", jobs[0]))
	if job.Function != "test.arg" || len(job.Returns) != len(c.IDs()) {
		t.Errorf("jobs show: %+v", job)
	}
}

// A node that was away while jobs ran knows them when it is back, and the others those that it took meanwhile.
func testJobsOfTheAway(t *testing.T, c *lab.Cluster) {
	ctx, away := t.Context(), c.Nodes[1]
	labtest.Must(t, away.Daemon.Kill())
	labtest.Must(t, c.Answering(ctx, c.Nodes[0])) // its minions have gone to the others
	jid := async(t, c.Nodes[0], "test.arg", "while", "away")
	inCache(t, c, c.Nodes[0], jid, time.Minute)
	ran := runner(t, away, "alone")
	labtest.Must(t, away.Daemon.Start(ctx))
	labtest.Must(t, away.Daemon.Serving(ctx, 2*time.Minute))
	said := sameJobs(t, 2*time.Minute, c.Nodes, jid, ran)
	check.Contains(t, text(said[ran]["lookup_jid"]), "alone", "the runner's job is lost")
}

// What the retention of one master removed does not come back from the others, which keep it.
func testJobsExpire(t *testing.T, c *lab.Cluster) {
	ctx, forgetful := t.Context(), c.Nodes[2]
	again := func(over ...lab.Settings) {
		labtest.Must(t, forgetful.Master.Configure(append([]lab.Settings{clusterMasters}, over...)...))
		labtest.Must(t, forgetful.Master.Restart(ctx))
		labtest.Must(t, forgetful.Master.WaitReady(ctx, 3*time.Minute))
	}
	jid := async(t, c.Nodes[0], "test.arg", "forget", "me")
	for _, n := range c.Nodes {
		inCache(t, c, n, jid, time.Minute)
	}
	again(lab.Settings{"keep_jobs_seconds": 20, "loop_interval": 2})
	defer again()
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the cleaning of "+forgetful.Name, func(ctx context.Context) error {
		if found, err := cached(ctx, forgetful, jid); err != nil || len(found) > 0 {
			return errors.Join(err, errors.New("the job is still there"))
		}
		return nil
	}))
	labtest.Must(t, forgetful.Daemon.Kill()) // everything is compared after a start
	labtest.Must(t, forgetful.Daemon.Start(ctx))
	labtest.Must(t, forgetful.Daemon.Serving(ctx, 2*time.Minute))
	young := async(t, c.Nodes[0], "test.arg", "keep", "me")
	sum := sha256.Sum256([]byte(young))
	name := hex.EncodeToString(sum[:])
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "a young job on "+forgetful.Name, func(context.Context) error {
		_, err := os.Stat(filepath.Join(forgetful.Master.CacheDir(), "jobs", name[:2], name[2:], "jid")) // not for long
		return err
	}))
	for _, n := range c.Nodes {
		found, err := cached(ctx, n, jid)
		labtest.Must(t, err)
		if n == forgetful && len(found) > 0 {
			t.Errorf("%s came back on %s", jid, n.Name)
		}
		if n != forgetful && len(found) < len(c.IDs()) {
			t.Errorf("%s is lost on %s", jid, n.Name)
		}
	}
}
