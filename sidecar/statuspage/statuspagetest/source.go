// Package statuspagetest is a cluster that the status page can be shown of: three nodes, of which one is being drained
// and one master is down, jobs at work, minions that are gone.
package statuspagetest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/statuspage"
)

// Now is when it is looked at.
var Now = time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)

// Source answers for it. Change is called with each status, if it is there.
type Source struct {
	mu     sync.Mutex
	change func(*adminapi.Status)
}

// Change has what the next status says changed.
func (s *Source) Change(f func(*adminapi.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = f
}

func ptr[T any](v T) *T { return &v }

func ago(d time.Duration) time.Time { return Now.Add(-d) }

// Status implements statuspage.Source.
func (s *Source) Status(context.Context) (adminapi.Status, error) {
	st := adminapi.Status{
		Cluster: &adminapi.Cluster{
			ID: "production", UUID: "6f1c0b9e-6c58-4e9a-9d4e-2f8a5a3b7c11", Leader: "m1", Term: 7, Epoch: 12,
			Quorum: adminapi.Quorum{Voters: 3, Alive: 3, Need: 2, OK: true}, VoterIDs: []string{"m1", "m2", "m3"},
		},
		Members: []adminapi.Member{
			{ID: "m1", Role: adminapi.RoleVoter, State: adminapi.StateAlive, Leader: true, Self: true, Term: 7,
				SaltVersion: "3008.3", Version: "0.9.0", Subscribers: ptr(1418), Lag: ptr(uint64(0)), Ready: ptr(true)},
			{ID: "m2", Role: adminapi.RoleVoter, State: adminapi.StateAlive, Term: 7, SaltVersion: "3007.15", Version: "0.9.0",
				Subscribers: ptr(1386), Lag: ptr(uint64(0)), Ready: ptr(true)},
			{ID: "m3", Role: adminapi.RoleVoter, State: adminapi.StateAlive, Term: 7, SaltVersion: "3006.28", Version: "0.9.0",
				Subscribers: ptr(211), Lag: ptr(uint64(2)), Ready: ptr(false), Draining: true},
		},
		Node: adminapi.Node{
			ID: "m1", Version: "0.9.0", SaltVersion: "3008.3", Started: ago(50 * time.Hour), Ready: true,
			Edges:    []adminapi.Edge{{Name: "pub", Connections: 1418}, {Name: "req", Connections: 96, InFlight: 3}},
			Upstream: adminapi.Upstream{Address: "127.0.0.1:4506", Up: true, Subscribed: true, SignedIn: true, Connections: 12},
			Returns: &adminapi.Returns{Journals: []adminapi.Journal{{Name: "own", State: "ok"},
				{Name: "to.m3", State: "ok", Waiting: []adminapi.Waiting{{Consumer: "forward", Records: 42}}}}},
		},
		Problems: []adminapi.Problem{
			{Level: adminapi.LevelWarn, Node: "m2", Message: "the local salt-master does not serve; the others' do",
				Hint: "start the salt-master: nothing answers at 127.0.0.1:4506"},
			{Level: adminapi.LevelWarn, Node: "m3", Message: "m3 is drained, or being drained: it takes no minions",
				Hint: "when its work is done: saltclusterctl undrain m3"},
		},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.change != nil {
		s.change(&st)
	}
	return st, nil
}

// RingInfo implements statuspage.Source.
func (s *Source) RingInfo(context.Context, adminapi.RingQuery) (adminapi.RingInfo, error) {
	return adminapi.RingInfo{Nodes: []adminapi.RingNode{
		{ID: "m1", State: adminapi.StateAlive, Weight: 100, Share: 0.502},
		{ID: "m2", State: adminapi.StateAlive, Weight: 100, Share: 0.498},
		{ID: "m3", State: adminapi.StateAlive, Weight: 100, Draining: true},
	}}, nil
}

// RootsStatus implements statuspage.Source.
func (s *Source) RootsStatus(context.Context) (adminapi.RootsStatus, error) {
	slots := []adminapi.RootsSlot{{Slot: "file:base:0", Dir: "/srv/salt", Files: 812},
		{Slot: "pillar:base:0", Dir: "/srv/pillar", Files: 164}}
	return adminapi.RootsStatus{
		From: "m1", Head: &adminapi.RootsRevision{Number: 318, Author: "m1", Time: ago(4 * time.Minute), Files: 976},
		Nodes: []adminapi.RootsNode{
			{Node: "m1", Revision: 318, Current: true, Slots: slots, LastScan: ago(2 * time.Second)},
			{Node: "m2", Revision: 318, Current: true, Slots: slots, LastScan: ago(3 * time.Second)},
			{Node: "m3", Revision: 317, Phase: "fetching 3 of 12 files", Slots: slots, LastScan: ago(2 * time.Second),
				Conflicts: 1},
		},
	}, nil
}

func jid(d time.Duration) string { return ago(d).Format("20060102150405") + "123456" }

// ListJobs implements statuspage.Source.
func (s *Source) ListJobs(context.Context, int) (adminapi.JobList, error) {
	return adminapi.JobList{Jobs: []adminapi.JobRow{
		{JID: jid(8 * time.Second), Function: "state.apply", Target: "G@role:web and not web17*", User: "sudo_ada",
			Minions: 640, Returned: 388, Nodes: []string{"m1", "m2"}},
		{JID: jid(4 * time.Minute), Function: "test.ping", Target: "*", User: "root", Minions: 3015, Returned: 3015,
			Nodes: []string{"m1", "m2", "m3"}},
		{JID: jid(42 * time.Minute), Function: "pkg.upgrade", Target: "db*", User: "sudo_grace", Minions: 24, Returned: 23,
			Nodes: []string{"m2", "m3", "m1"}},
		{JID: jid(3 * time.Hour), Function: "saltutil.refresh_pillar", Target: "*", User: "root", Minions: 3015,
			Returned: 3015, Nodes: []string{"m1", "m2", "m3"}},
	}}, nil
}

// Presence implements statuspage.Source.
func (s *Source) Presence(context.Context) (adminapi.Presence, error) {
	p := adminapi.Presence{From: "m1", Absent: []adminapi.PresentMinion{
		{ID: "db7.example.com", Node: "m2", Address: "192.0.2.87", Seen: ago(38 * time.Minute)},
		{ID: "web112.example.com", Node: "m1", Address: "192.0.2.212", Seen: ago(26 * time.Hour)},
		{ID: "printserver"},
	}}
	for i := range 3012 {
		p.Present = append(p.Present, adminapi.PresentMinion{ID: fmt.Sprint("web", i), Node: "m1", Doubt: i < 2})
	}
	return p, nil
}

// Protocols implements statuspage.Source.
func (s *Source) Protocols(context.Context) (adminapi.Protocols, error) {
	one := func(id, fun string, took, since time.Duration) adminapi.MinionProtocol {
		return adminapi.MinionProtocol{ID: id, Node: "m2",
			Returned: &adminapi.MinionReturn{JID: jid(since + took), Function: fun, At: ago(since)}}
	}
	return adminapi.Protocols{From: "m1", Minions: []adminapi.MinionProtocol{
		one("db3.example.com", "pkg.upgrade", 11*time.Minute, 30*time.Minute),
		one("web9.example.com", "state.apply", 47*time.Second, 3*time.Hour),
		one("web10.example.com", "test.ping", time.Second, time.Minute),
	}}, nil
}

// Series is an hour of its work.
func Series() *statuspage.Series {
	values := make([]float64, 4)
	s := statuspage.NewSeries([]statuspage.Measure{
		{Name: "publications", Doc: "of all masters to minions of this node"},
		{Name: "returns", Doc: "taken by this node"},
		{Name: "sign-ins", Doc: "of minions"}, {Name: "minions", Level: true, Doc: "connected to this node"},
	}, func() []float64 { return values })
	for i := range 110 {
		values[0] += float64(1 + i%17/15*40)
		values[1] += 300 + 250*math.Sin(float64(i)/9) + float64(i%13/12*9000)
		values[2] += float64(i % 7)
		values[3] = 1200 + float64(min(i, 60))*218/60
		s.Take(ago(time.Hour).Add(time.Duration(i) * statuspage.Step))
	}
	return s
}
