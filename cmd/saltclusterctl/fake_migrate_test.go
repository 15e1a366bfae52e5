package main

import (
	"context"
	"sync"

	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

var _ admin.Migrator = (*fake)(nil)

// fakeShare is three nodes on a share; each step of theirs takes one look.
type fakeShare struct {
	mu      sync.Mutex
	nodes   map[string]*adminapi.MigrateNode
	steps   []string // taken, with the nodes
	refused string   // a node that cannot be migrated
	failing string   // a node whose copying fails
	byHand  string   // a node that wants to be helped
}

func (s *fakeShare) begin() {
	if s.nodes != nil {
		return
	}
	s.nodes = map[string]*adminapi.MigrateNode{}
	for _, id := range []string{"m1", "m2", "m3"} {
		s.nodes[id] = &adminapi.MigrateNode{Node: id, Shared: true, Stage: "shared", Caught: true,
			Trees: []adminapi.MigrateTree{
				{Name: "pki", From: "/share/pki", To: "/var/lib/salt-master/pki"},
			}}
	}
	if n := s.nodes[s.refused]; n != nil {
		n.Refused = []string{"cachedir (/share/cache) as a whole is on the share"}
	}
}

func (f *fake) Migration(_ context.Context, plan bool, to string) (adminapi.Migration, error) {
	s := &f.share
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	m := adminapi.Migration{From: "m1"}
	for _, id := range []string{"m1", "m2", "m3"} {
		n := *s.nodes[id]
		if plan && n.Shared && len(n.Refused) == 0 {
			n.Steps = []string{"copy /share/pki to " + to + " (2 files, 1 MiB)", "restart the salt-master"}
			n.Notes = []string{"extension_modules stays on the share: /share/ext"}
		}
		m.Nodes = append(m.Nodes, n)
		s.finish(s.nodes[id])
	}
	return m, f.err
}

// finish ends what a node is doing when somebody has seen it.
func (s *fakeShare) finish(n *adminapi.MigrateNode) {
	switch step := n.Busy; {
	case step == adminapi.MigrateCopy && n.Node == s.failing:
		n.Error = "no space left on device"
	case step == adminapi.MigrateCopy:
		n.Stage, n.Copied = "copied", adminapi.MigrateCopied{Files: 2, Bytes: 1 << 20}
	case step == adminapi.MigrateSwitch:
		n.Stage, n.Shared, n.StandIn = "isolated", false, false
	case step == adminapi.MigrateStandIn:
		n.StandIn = true
	case step == adminapi.MigrateBack:
		n.Stage, n.Shared = "copied", true
	}
	n.Busy, n.Doing, n.ByHand = "", "", nil
}

func (f *fake) Migrate(_ context.Context, r adminapi.MigrateRequest) (adminapi.MigrateNode, error) {
	s := &f.share
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	n := s.nodes[r.Node]
	s.steps = append(s.steps, r.Node+" "+string(r.Step))
	n.Busy, n.Doing, n.Error = r.Step, "at work", ""
	if r.Step == adminapi.MigrateSwitch && r.Node == s.byHand {
		n.ByHand = &adminapi.MigrateByHand{Why: "the salt-master must read its new configuration",
			Commands: []string{"systemctl restart salt-master"}}
	}
	return *n, nil
}
