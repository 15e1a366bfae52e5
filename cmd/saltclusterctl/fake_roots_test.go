package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

var _ admin.RootsKeeper = (*fake)(nil)

func (f *fake) RootsStatus(context.Context) (adminapi.RootsStatus, error) {
	return adminapi.RootsStatus{From: "m1", Head: &adminapi.RootsRevision{Number: 7, Author: "m1", Files: 3,
		Bytes: 3 << 20, Time: time.Now()},
		Nodes: []adminapi.RootsNode{
			{Node: "m1", Mode: "auto", Revision: 7, Current: true, Notes: []string{"what gitfs serves is not replicated"},
				Slots: []adminapi.RootsSlot{
					{Slot: "file:base:0", Dir: "/srv/salt", Files: 3, Bytes: 3 << 20},
					{Slot: "file:base:1", Dir: "/srv/spm/salt", Unavailable: "missing"},
					{Slot: "pillar:base:0", Dir: "/srv/new", Unavailable: "another file system is in its place", Replaced: true},
				}},
			{Node: "m2", Mode: "auto", Revision: 6, Phase: "fetch", Bytes: 4 << 20, BytesDone: 1 << 20},
			{Node: "m3", Error: "refused"},
			{Node: "m4", Off: "cluster_roots_sync is off"},
		}}, f.err
}

func (f *fake) RootsHistory(context.Context) (adminapi.RootsHistory, error) {
	return adminapi.RootsHistory{Revisions: []adminapi.RootsRevision{
		{Number: 6, Author: "m2", Kind: "edit", State: "applied", Files: 9},
		{Number: 7, Author: "m1", Kind: "merge", State: "applied", Files: 9, Current: true, Note: "evil \x1b[2J"},
		{Number: 8, Author: "m1", Kind: "edit", State: "held", Removed: 9},
	}}, f.err
}

func (f *fake) RootsConflicts(context.Context) (adminapi.RootsConflicts, error) {
	return adminapi.RootsConflicts{Missing: []string{"m3"}, Conflicts: []adminapi.RootsConflict{
		{Node: "m2", ID: "c1", Slot: "file:base:0", Path: "top.sls", Reason: "edited on both",
			Kept: "/srv/salt/.saltcluster-aside/c1"},
		{Node: "m1", ID: "l1", Slot: "file:base:0", Path: "logs/a.log", Kept: "/srv/aside/l1", Size: 3 << 20},
		{Node: "m1", ID: "l2", Slot: "file:base:0", Path: "logs/old/b.log", Kept: "/srv/aside/l2", Size: 1 << 20},
		{Node: "m1", ID: "l3", Slot: "file:base:0", Path: "logs/kept", Kept: "/srv/aside/l3"},
		{Node: "m2", ID: "l4", Slot: "file:base:0", Path: "logs/a.log", Kept: "/srv/aside/l4"},
	}}, f.err
}

func (f *fake) RootsDiff(_ context.Context, from, to string) (adminapi.RootsDiff, error) {
	if to == "m9" {
		return adminapi.RootsDiff{}, adminapi.Errorf(adminapi.CodeUnreachable, "saltclusterctl members",
			"%s does not answer: refused", to)
	}
	d := adminapi.RootsDiff{From: from, To: to, Changes: []adminapi.RootsChange{}}
	if to != "m1" {
		d.Changes = append(d.Changes, adminapi.RootsChange{Slot: "file:base:0", Path: "a\nb", What: "added"})
	}
	if from == "m3" {
		d.LeftOut = []string{"m3 leaves file:dev:0 alone: no such directory"}
	}
	return d, f.err
}

func (f *fake) SyncRoots(_ context.Context, r adminapi.SyncRootsRequest, p admin.Progress) (adminapi.Outcome, error) {
	p("scan", fmt.Sprintf("dry run %t, env %q, force %t, accept %q, wait %t", r.DryRun, r.Env, r.Force, r.Accept, r.Wait))
	o := &adminapi.RootsOutcome{Proposed: true, DryRun: r.DryRun,
		Changes: []adminapi.RootsChange{{Slot: "file:base:0", Path: "top.sls", What: "changed"}}}
	out := adminapi.Outcome{Node: "m1", Message: "revision 8 is on all nodes", Roots: o}
	switch {
	case r.DryRun:
		out.Message = "1 change would be sent"
	case r.Env == "held":
		o.Held, out.Message, out.Next = true, "revision 8 deletes many files and waits for a decision", []string{"saltclusterctl roots confirm 8"}
	default:
		o.Nodes = []adminapi.RootsApplied{{Node: "m1", Applied: true, Author: true, Revision: 8},
			{Node: "m2", Applied: true, Revision: 8, Installed: 1}}
	}
	if r.Env == "down" {
		o.Nodes = append(o.Nodes, adminapi.RootsApplied{Node: "m3", Error: "it does not answer"})
		o.Failed, out.Message = []string{"m3"}, "not on all nodes: m3"
	}
	return out, f.err
}

func (f *fake) DecideRoots(_ context.Context, r adminapi.DecideRootsRequest,
	_ admin.Progress) (adminapi.Outcome, error) {
	return adminapi.Outcome{Message: fmt.Sprintf("%s %d, wait %t", r.Decision, r.Revision, r.Wait),
		Roots: &adminapi.RootsOutcome{}}, f.err
}

func (f *fake) AsideRoots(_ context.Context, r adminapi.AsideRootsRequest, _ admin.Progress) (adminapi.Outcome, error) {
	if r.ID == "l2" { // somebody else was faster
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeNotFound, "", "nothing was put aside on this node as %s",
			r.ID)
	}
	return adminapi.Outcome{Message: fmt.Sprintf("%s, restore %t", r.ID, r.Restore),
		Roots: &adminapi.RootsOutcome{}}, f.err
}

func (f *fake) RefillRoots(_ context.Context, r adminapi.RefillRootsRequest,
	p admin.Progress) (adminapi.Outcome, error) {
	p("refill", r.Dir)
	if r.Dir != "/srv/salt" {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "",
			"%s: no directory of the roots that is left alone", r.Dir)
	}
	return adminapi.Outcome{Message: r.Dir + " has the content of the cluster", Roots: &adminapi.RootsOutcome{}}, f.err
}
