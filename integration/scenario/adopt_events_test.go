//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// TestAdoptHotEvents counts what minions of three versions with two 3008 masters in their list fire: at stock masters,
// at the nodes that these become, and at the stock masters that the nodes become again. Such a minion sends each event
// once to each master in its list, and nothing in an event says that it is a copy: a cluster fires as many as stock
// masters do.
func TestAdoptHotEvents(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	s := newHotSite(t, lab.Versions[2])
	var ids []string
	for _, v := range lab.Versions {
		ids = append(ids, "hot"+v[2:4])
		s.minion(ids[len(ids)-1], lab.Settings{"master": s.addrs})
	}
	for i, a := range s.masters {
		s.accept(i, ids...)
		a.bare.Minions = s.these(ids...)
	}
	for _, a := range s.masters {
		labtest.Must(t, a.reached(t.Context()))
	}
	keys, stock := s.minionKeys(), s.fired("stock")
	s.masters[0].adopt()
	files := t.TempDir()
	s.prepare(files)
	s.follow(files, func() {})
	for i, a := range s.masters {
		labtest.Must(t, a.reached(t.Context()))
		s.once(a, fmt.Sprint("m", i+1), ids...)
	}
	s.untouched(keys)
	for way, at := range s.fired("cluster") {
		if want := stock[way]; at[0]+at[1] != want[0]+want[1] {
			t.Errorf("%s: fired %v times on the masters, %v as stock masters", way, at, want)
		}
	}
	s.firesAtOrigin()
	if got := s.fired("origin"); !maps.Equal(got, stock) {
		t.Errorf("stock masters fire %v, nodes with the policy origin %v", stock, got)
	}
	s.leave()
	if got := s.fired("again"); !maps.Equal(got, stock) {
		t.Errorf("stock masters fire %v, those that have left %v", stock, got)
	}
	s.untouched(keys)
}

// firesAtOrigin has each node fire what minions send to it.
func (s *hotSite) firesAtOrigin() {
	for _, a := range s.masters {
		f, err := os.OpenFile(a.node.Daemon.ConfigPath, os.O_APPEND|os.O_WRONLY, 0)
		labtest.Must(s.t, err)
		_, err = f.WriteString("\ncluster_event_policy: {'*': origin}\n")
		labtest.Must(s.t, errors.Join(err, f.Close()))
		labtest.Must(s.t, a.node.Daemon.Restart(s.t.Context()))
	}
	for _, a := range s.masters {
		labtest.Must(s.t, a.node.Daemon.Serving(s.t.Context(), time.Minute))
		labtest.Must(s.t, a.reached(s.t.Context()))
	}
}

// fired has each minion fire an event within a job and by salt-call, and says how often it was fired on each master.
func (s *hotSite) fired(when string) map[string][2]int {
	s.t.Helper()
	ctx, total := s.t.Context(), map[string][2]int{}
	for id, m := range s.minions {
		job, call := "lab/hot/"+when+"/job/"+id, "lab/hot/"+when+"/call/"+id
		got, err := s.masters[0].bare.Master.Pub(ctx, id, "event.send", job)
		labtest.Must(s.t, err)
		labtest.Must(s.t, lab.AnsweredBy(got, id))
		_, err = m.Call(ctx, "event.send", call)
		labtest.Must(s.t, err)
		for _, tag := range []string{job, call} {
			way := strings.Split(tag, "/")[3] + " " + id
			total[way] = s.heard(tag, len(s.masters))
			s.t.Logf("%s, %s: %v", when, way, total[way])
		}
	}
	return total
}

// heard waits until an event was fired so many times on all masters, and says how often on each of them.
func (s *hotSite) heard(tag string, times int) (at [2]int) {
	s.t.Helper()
	labtest.Must(s.t, lab.Eventually(s.t.Context(), time.Minute, tag, func(context.Context) error {
		for i, a := range s.masters {
			at[i] = a.bus.count(a.node.Name, tag)
		}
		if at[0]+at[1] < times {
			return fmt.Errorf("it was fired %v times on the masters", at)
		}
		return nil
	}))
	for i, a := range s.masters { // one that is too many is likely there by now
		a.bus.fence(s.t.Context(), s.t)
		at[i] = a.bus.count(a.node.Name, tag)
	}
	return at
}

// leave makes stock masters of the nodes again, the second one first.
func (s *hotSite) leave() {
	s.t.Helper()
	ctx := s.t.Context()
	for i := len(s.masters) - 1; i >= 0; i-- {
		a := s.masters[i]
		a.says(a.ctl(0, "leave", "--restore-master", "--yes"), "removed: ", "systemctl disable --now saltclusterd",
			"systemctl restart salt-master")
		_, took, none := a.restart(func() {
			labtest.Must(s.t, a.node.Daemon.Stop(ctx))
			a.node.Master.Addr = a.node.Addr
		})
		s.t.Logf("%s has left: all answer after %s, no connection for %v", a.node.Name, took, none)
	}
	for i, a := range s.masters {
		if err := a.reached(ctx); err != nil {
			s.restartHung(err)
			labtest.Must(s.t, a.reached(ctx))
		}
		if a.reaches == nil { // in failover a minion is at one of them
			s.once(a, fmt.Sprint("left", i+1), a.ids()...)
		}
	}
}

// restartHung restarts the minions of 3007. Of three such that lost both masters one after the other one has hung, in
// the middle of checks whether its masters are alive. Stock masters do that to it: the nodes have left.
func (s *hotSite) restartHung(why error) {
	for id, m := range s.minions {
		if m.Version == lab.Versions[1] {
			s.t.Logf("restart %s: %v", id, why)
			labtest.Must(s.t, m.Kill())
			labtest.Must(s.t, m.Start(s.t.Context()))
			s.pids[id] = m.PID()
		}
	}
}
