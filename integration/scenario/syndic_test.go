//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// countedJobs are jobs published above syndics, counted where they run, and above where they are returned.
type countedJobs struct {
	ids  []string    // minions below
	tops []*lab.Node // masters above
	bus  *listeners  // of tops
	dir  string      // where jobs leave what they do
	jobs int
}

func countJobs(t *testing.T, ids []string, tops ...*lab.Node) *countedJobs {
	t.Helper()
	j := &countedJobs{ids: ids, tops: tops, dir: t.TempDir()}
	labtest.Must(t, os.Chmod(j.dir, 0o777))
	return j
}

// listen begins to count; the masters above run.
func (j *countedJobs) listen(t *testing.T) {
	t.Helper()
	var masters []*lab.Master
	for _, n := range j.tops {
		masters = append(masters, n.Master)
	}
	j.bus = listen(t, masters...)
}

// underSite is a cluster with a syndic beside each of its nodes, below one stock master of masters.
type underSite struct {
	*lab.Cluster
	*countedJobs
	top     *lab.Node // without a saltclusterd
	syndics []*lab.Syndic
}

// TestSyndicsBeside: each job of the master above reaches each minion by each syndic, runs there once, and is returned
// above once, also while one of the nodes is dead. "make test-syndics".
func TestSyndicsBeside(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-syndics; TestSigned has a syndic below a cluster")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	h, err := l.Host(ctx, "top")
	labtest.Must(t, err)
	s := &underSite{}
	top, err := h.NewMaster(lab.Versions[1], h.Addr, lab.Settings{"order_masters": true, "auto_accept": true,
		"timeout": 10, "gather_job_timeout": 15})
	labtest.Must(t, err)
	s.top = &lab.Node{Host: h, Master: top}
	s.Cluster, err = l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, DaemonSettings: metricsForAll,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15, "syndic_master": h.Addr},
	})
	labtest.Must(t, err)
	s.countedJobs = countJobs(t, s.IDs(), s.top)
	labtest.Must(t, top.Start(ctx))
	labtest.Must(t, s.Up(ctx))
	labtest.Must(t, top.WaitReady(ctx, 3*time.Minute))
	s.listen(t)
	for _, n := range s.Nodes {
		y, err := n.Master.NewSyndic()
		labtest.Must(t, err)
		labtest.Must(t, y.Start(ctx))
		s.syndics = append(s.syndics, y)
	}
	for _, step := range []struct {
		name string
		test func(*testing.T, *underSite)
	}{
		{"all nodes", testSyndicsAll},
		{"a node is dead", testSyndicsNodeDead},
		{"a node dies during a job", testSyndicsNodeDies},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

// reached waits until all minions answer a master above.
func (j *countedJobs) reached(t *testing.T, top *lab.Node) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, "minions to answer "+top.Name, func(ctx context.Context) error {
		got, err := top.Master.Pub(ctx, "*", "test.ping")
		if err == nil {
			err = lab.AnsweredBy(got, j.ids...)
		}
		return err
	}))
}

// publish starts a job above that leaves a line for each minion, and runs until the file end is there.
func (j *countedJobs) publish(t *testing.T, top *lab.Node) (jid, end string) {
	t.Helper()
	j.jobs++
	name := filepath.Join(j.dir, fmt.Sprint("job", j.jobs))
	end = name + ".end"
	return async(t, top, "cmd.run", fmt.Sprintf("echo ran >> %s.{{grains.id}}; until [ -e %s ]; do sleep 0.2; done", name,
		end), "template=jinja", inShell), end
}

// began waits until the last job runs on all minions.
func (j *countedJobs) began(t *testing.T) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the job to run", func(context.Context) error {
		for _, id := range j.ids {
			if _, err := os.Stat(fmt.Sprintf("%s/job%d.%s", j.dir, j.jobs, id)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// once has a job of a master above run, and fails if it has not run and been returned once.
func (j *countedJobs) once(t *testing.T, top *lab.Node) {
	t.Helper()
	jid, end := j.publish(t, top)
	j.began(t)
	labtest.Must(t, os.WriteFile(end, nil, 0o644))
	j.cameOnce(t, top, jid)
}

// cameOnce waits for the returns of the last job, which its minions may end, and fails if one has run it or has come
// more than once.
func (j *countedJobs) cameOnce(t *testing.T, top *lab.Node, jid string) {
	t.Helper()
	returns := func(id string) (n int) {
		for _, above := range j.tops {
			n += j.bus.count(above.Name, "salt/job/"+jid+"/ret/"+id)
		}
		return n
	}
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "returns above", func(context.Context) error {
		var errs []error
		for _, id := range j.ids {
			if returns(id) == 0 {
				errs = append(errs, errors.New("none of "+id))
			}
		}
		return errors.Join(errs...)
	}))
	j.reached(t, top) // what another syndic, or by another connection, would have come of this job has come by now
	j.bus.fence(t.Context(), t)
	for _, id := range j.ids {
		raw, err := os.ReadFile(fmt.Sprintf("%s/job%d.%s", j.dir, j.jobs, id))
		labtest.Must(t, err)
		if ran, came := strings.Count(string(raw), "ran"), returns(id); ran != 1 || came != 1 {
			t.Errorf("%s ran the job %d times, and %d returns came", id, ran, came)
		}
	}
}

func testSyndicsAll(t *testing.T, s *underSite) {
	s.reached(t, s.top)
	for range 3 {
		s.once(t, s.top)
	}
}

// kill ends everything of a node.
func (s *underSite) kill(t *testing.T, i int) {
	t.Helper()
	n := s.Nodes[i]
	labtest.Must(t, errors.Join(n.Daemon.Kill(), n.Master.Kill(), s.syndics[i].Kill()))
}

func (s *underSite) start(t *testing.T, i int) {
	t.Helper()
	ctx, n := t.Context(), s.Nodes[i]
	labtest.Must(t, errors.Join(n.Daemon.Start(ctx), n.Master.Start(ctx)))
	labtest.Must(t, errors.Join(n.Master.WaitReady(ctx, 3*time.Minute), n.Daemon.Serving(ctx, 2*time.Minute)))
	labtest.Must(t, s.syndics[i].Start(ctx))
}

func testSyndicsNodeDead(t *testing.T, s *underSite) {
	s.kill(t, 0)
	s.reached(t, s.top)
	s.once(t, s.top)
	s.start(t, 0)
	s.reached(t, s.top)
}

// A node dies while minions run a job that they have from its master. The masters of the others have published it, too,
// so a syndic beside one of those sends the returns.
func testSyndicsNodeDies(t *testing.T, s *underSite) {
	jid, end := s.publish(t, s.top)
	s.began(t)
	dead := s.publisherOf(t, s.Minions[0], jid)
	t.Logf("%s runs what it has from %s", s.Minions[0].ID, s.Nodes[dead].Name)
	s.kill(t, dead)
	labtest.Must(t, os.WriteFile(end, nil, 0o644))
	s.cameOnce(t, s.top, jid)
	s.start(t, dead)
	s.cameOnce(t, s.top, jid)
}

// publisherOf is the node that a minion has a job from that it runs.
func (s *underSite) publisherOf(t *testing.T, m *lab.Minion, jid string) int {
	t.Helper()
	raw, err := os.ReadFile(m.RunsPath(jid))
	labtest.Must(t, err)
	var id string
	labtest.Must(t, saltwire.WalkMap(raw, func(key, value []byte) error {
		if string(key) == "master_id" {
			id, _ = saltvalue.Text(value)
		}
		return nil
	}))
	i := slices.IndexFunc(s.Nodes, func(n *lab.Node) bool { return n.Name == id })
	if i < 0 {
		t.Fatalf("the job of %s is of %q", m.ID, id)
	}
	return i
}

// TestSyndicsAbove: masters of 3006 and 3007, each with a syndic that has both nodes of a cluster in its list, below that
// cluster. A job of either node runs below once and is returned once. "make test-syndics".
//
// A syndic of 3008 with two masters gives no job to its minions, below stock masters either. And a syndic sends returns
// to the first master of its list: while that one is dead they come after the command line has given up.
func TestSyndicsAbove(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-syndics; TestSigned has a syndic below a cluster")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: []string{lab.Versions[0], lab.Versions[2]},
		MasterSettings: lab.Settings{"order_masters": true, "auto_accept": true, "syndic_wait": 2, "timeout": 10,
			"gather_job_timeout": 15},
	})
	labtest.Must(t, err)
	var above, ids []string
	for _, n := range c.Nodes {
		above = append(above, n.Addr)
	}
	var below []*lowMaster
	for _, v := range lab.Versions[:2] {
		name := "low" + strings.Split(v, ".")[0]
		h, err := l.Host(ctx, name)
		labtest.Must(t, err)
		y, err := h.NewSyndic(v, "", lab.Settings{"syndic_master": above, "auto_accept": true})
		labtest.Must(t, err)
		m, err := h.NewMinion(v, "below-"+name, h.Addr)
		labtest.Must(t, err)
		below, ids = append(below, &lowMaster{y, m}), append(ids, m.ID)
	}
	labtest.Must(t, c.Up(ctx))
	j := countJobs(t, ids, c.Nodes...)
	j.listen(t)
	for _, m := range below {
		labtest.Must(t, m.start(ctx))
	}
	for _, m := range below { // a syndic needs its master's event bus when it starts
		labtest.Must(t, m.Master.WaitReady(ctx, 3*time.Minute))
		labtest.Must(t, m.Start(ctx))
	}
	for _, n := range c.Nodes {
		j.reached(t, n)
	}
	for _, n := range c.Nodes {
		j.once(t, n)
	}
}
