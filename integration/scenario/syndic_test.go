//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// underSite is a cluster with a syndic beside each of its nodes, below one stock master of masters.
type underSite struct {
	*lab.Cluster
	top     *lab.Node // without a saltclusterd
	syndics []*lab.Syndic
	bus     *listeners
	dir     string // where jobs leave what they do
	jobs    int
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
	s := &underSite{dir: t.TempDir()}
	labtest.Must(t, os.Chmod(s.dir, 0o777))
	top, err := h.NewMaster(lab.Versions[1], h.Addr, lab.Settings{"order_masters": true, "auto_accept": true,
		"timeout": 10, "gather_job_timeout": 15})
	labtest.Must(t, err)
	s.top = &lab.Node{Host: h, Master: top}
	s.Cluster, err = l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, DaemonSettings: metricsForAll,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15, "syndic_master": h.Addr},
	})
	labtest.Must(t, err)
	labtest.Must(t, top.Start(ctx))
	labtest.Must(t, s.Up(ctx))
	labtest.Must(t, top.WaitReady(ctx, 3*time.Minute))
	s.bus = listen(t, top)
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
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

// reached waits until all minions answer the master above.
func (s *underSite) reached(t *testing.T) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, "minions to answer above", func(ctx context.Context) error {
		got, err := s.top.Master.Pub(ctx, "*", "test.ping")
		if err == nil {
			err = lab.AnsweredBy(got, s.IDs()...)
		}
		return err
	}))
}

// publish starts a job above that leaves a line for each minion, and runs until the file end is there.
func (s *underSite) publish(t *testing.T) (jid, end string) {
	t.Helper()
	s.jobs++
	name := filepath.Join(s.dir, fmt.Sprint("job", s.jobs))
	end = name + ".end"
	return async(t, s.top, "cmd.run", fmt.Sprintf("echo ran >> %s.{{grains.id}}; until [ -e %s ]; do sleep 0.2; done", name,
		end), "template=jinja", inShell), end
}

// began waits until the last job runs on all minions.
func (s *underSite) began(t *testing.T) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the job to run", func(context.Context) error {
		for _, id := range s.IDs() {
			if _, err := os.Stat(fmt.Sprintf("%s/job%d.%s", s.dir, s.jobs, id)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// once waits until the last job was returned above, and says how often it ran, and was returned.
func (s *underSite) once(t *testing.T, jid string) {
	t.Helper()
	returns := func(id string) int { return s.bus.count(s.top.Name, "salt/job/"+jid+"/ret/"+id) }
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "returns above", func(context.Context) error {
		var errs []error
		for _, id := range s.IDs() {
			if returns(id) == 0 {
				errs = append(errs, errors.New("none of "+id))
			}
		}
		return errors.Join(errs...)
	}))
	s.reached(t) // what another syndic would have sent of this job has come by now
	s.bus.fence(t.Context(), t)
	for _, id := range s.IDs() {
		raw, err := os.ReadFile(fmt.Sprintf("%s/job%d.%s", s.dir, s.jobs, id))
		labtest.Must(t, err)
		if ran, came := strings.Count(string(raw), "ran"), returns(id); ran != 1 || came != 1 {
			t.Errorf("%s ran the job %d times, and %d returns came", id, ran, came)
		}
	}
}

func testSyndicsAll(t *testing.T, s *underSite) {
	s.reached(t)
	for range 3 {
		jid, end := s.publish(t)
		s.began(t)
		labtest.Must(t, os.WriteFile(end, nil, 0o644))
		s.once(t, jid)
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
	s.reached(t)
	jid, end := s.publish(t)
	s.began(t)
	labtest.Must(t, os.WriteFile(end, nil, 0o644))
	s.once(t, jid)
	s.start(t, 0)
	s.reached(t)
}
