package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/ledger"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fileserve"
)

func TestRootsApplied(t *testing.T) {
	salt, spm := roots.SlotName{Kind: "file", Env: "base"}, roots.SlotName{Kind: "file", Env: "base", Pos: 1}
	report := func(base uint64, slots ...roots.SlotStatus) reportOrError {
		return reportOrError{rootsReport: rootsReport{Status: roots.Status{
			Base: base, Head: 7, Slots: slots, LastSwitch: &roots.Switch{Revision: 7, Installed: 3, Removed: 1},
		}}}
	}
	fine := roots.SlotStatus{Name: salt, Dir: "/srv/salt", Files: 9}
	reports := map[node.ID]reportOrError{
		"m1": report(7, fine, roots.SlotStatus{Name: spm, Dir: "/srv/spm/salt", Unavailable: "missing"}),
		"m2": report(8, roots.SlotStatus{Name: salt, Dir: "/srv/salt", Unavailable: "not mounted"}),
		"m3": report(6, fine),
		"m4": {err: errors.New("connection refused")},
		"m5": {rootsReport: rootsReport{Off: "cluster_roots_sync is off"}},
		"m6": {rootsReport: rootsReport{Off: startingRoots}},
	}
	used := slotsInUse(reports)
	for id, want := range map[node.ID]struct {
		applied bool
		err     string
	}{
		"m1": {true, ""}, "m2": {true, "not mounted"}, "m3": {false, "revision 7 after 6"}, "m4": {false, "connection refused"}, "m5": {false, ""},
		"m6": {false, "revision"},
	} {
		row, text := rootsApplied(id, reports[id], 7, used)
		if row.Applied != want.applied || (row.Error == "") != (want.err == "") || !strings.Contains(row.Error, want.err) || text == "" {
			t.Errorf("%s: %+v, %q", id, row, text)
		}
		if id == "m1" && (row.Installed != 3 || row.Removed != 1) {
			t.Errorf("m1: %+v", row)
		}
		if (row.Skipped != "") != (id == "m5") {
			t.Errorf("%s is left out: %q", id, row.Skipped)
		}
	}
}

// A node to which the kernel gives no hints says so; one that replicates nothing does not.
func TestNoHintsAreSaid(t *testing.T) {
	looked := roots.Status{LastScan: time.Now()}
	watched := looked
	watched.Watching = true
	for want, r := range map[int]rootsReport{0: {Status: watched}, 1: {Status: looked}, 2: {Notes: []string{"gitfs"}, Status: looked}} {
		if got := rootsNode("m1", reportOrError{rootsReport: r}, 7).Notes; len(got) != want {
			t.Errorf("%q", got)
		}
	}
	if got := rootsNode("m1", reportOrError{rootsReport: rootsReport{Off: "off", Status: looked}}, 7).Notes; len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestWhereARevisionIs(t *testing.T) {
	m1, off := adminapi.RootsApplied{Node: "m1", Applied: true}, adminapi.RootsApplied{Node: "m3", Skipped: "cluster_roots_sync is off"}
	for want, nodes := range map[string][]adminapi.RootsApplied{
		"revision 7 is on all nodes": {m1}, "revision 7 is on all nodes but m3": {m1, off},
	} {
		if got := onNodes(7, nodes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRevisionOfTheState(t *testing.T) {
	in := state.RootsRevision{
		Number: 4, Parent: 2, Root: strings.Repeat("ab", 32), Kind: "edit", State: state.RootsHeld, Author: "m1",
		Stats: state.RootsStats{Files: 1, Bytes: 2, Changed: 3, Removed: 4}, Audit: state.Audit{At: 1000},
	}
	out, err := revision(in)
	if err != nil || out.Number != 4 || out.State != roots.StateHeld || out.Root.String() != in.Root || out.Stats.Removed != 4 || out.Time>>16 != 1000 {
		t.Errorf("%+v, %v", out, err)
	}
	in.Root = "x"
	if _, err := revision(in); err == nil {
		t.Error("a revision without a root")
	}
}

func TestMastersListsAreForgotten(t *testing.T) {
	dir := t.TempDir()
	c := masterConfig(t, dir, "cachedir: DIR/cache\n")
	lists := filepath.Join(dir, "cache/file_lists/roots")
	if err := os.MkdirAll(filepath.Join(lists, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"base.p", "my env.p", ".base.w", "x/base.p"} {
		if err := os.WriteFile(filepath.Join(lists, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &service{m: &member{d: &Daemon{master: c}}, files: fileserve.New(fileserve.Config{})}
	s.forgetLists(nil)
	left, err := os.ReadDir(lists)
	if err != nil || len(left) != 2 || left[0].Name() != ".base.w" || left[1].Name() != "x" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// While a node would stop at a command that it does not know, none is proposed.
func TestOlderNodesAreNotBroken(t *testing.T) {
	newer := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "2", Roots: true}}
	older := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "1"}}
	down, downOld := newer, older
	down.State, downOld.State = gossip.Dead, gossip.Dead
	for _, tc := range []struct {
		name  string
		seen  map[node.ID]gossip.Member
		young bool
		want  string
	}{
		{"all are new", map[node.ID]gossip.Member{"b": newer, "c": down}, true, ""},
		{"one is old", map[node.ID]gossip.Member{"b": newer, "c": older}, false, "upgraded on c"},
		{"one was not seen yet", map[node.ID]gossip.Member{"b": newer}, true, "runs on c"},
		{"one is not seen for long", map[node.ID]gossip.Member{"b": newer}, false, ""},
		{"an old one is down", map[node.ID]gossip.Member{"b": newer, "c": downOld}, false, ""},
	} {
		up := versionGrace
		if tc.young {
			up = 0
		}
		err := understood(membersWithout([]node.ID{"b", "c"}, func(id node.ID) (gossip.Member, bool) { g, ok := tc.seen[id]; return g, ok }, up,
			func(meta node.Meta) bool { return meta.Roots }))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err != nil && !errors.Is(err, roots.ErrNoQuorum) {
			t.Errorf("%s: not ErrNoQuorum", tc.name)
		}
	}
}

func TestVerifyComparesRoots(t *testing.T) {
	off := &service{trees: &trees{off: "cluster_roots_sync is off"}}
	if l, err := off.rootsLedger(); err != nil || l.Off == "" {
		t.Errorf("%+v, %v", l, err)
	}
	slot := roots.SlotStatus{Name: roots.SlotName{Kind: "file", Env: "base"}, Unavailable: "missing"}
	whole, lacks := roots.Status{Base: 3, Live: roots.Hash{1}, Slots: []roots.SlotStatus{slot}}, roots.Status{Base: 3, Live: roots.Hash{1}}
	slot.Lacking = true
	lacks.Slots = []roots.SlotStatus{slot}
	decided3 := rootsItems(3, roots.Hash{1})
	if d := ledger.Compare(map[string]ledger.Ledger{"m1": rootsHeld(whole), decided: decided3}); len(d) > 0 {
		t.Errorf("a directory with nothing in it: %+v", d)
	}
	d := ledger.Compare(map[string]ledger.Ledger{"m1": rootsHeld(whole), "m2": rootsHeld(lacks), decided: decided3})
	if len(d) != 1 || !strings.HasSuffix(d[0].Texts["m2"], "without file:base:0") || d[0].Texts["m1"] != d[0].Texts[decided] {
		t.Errorf("a directory that is left alone: %+v", d)
	}
	a, b := rootsItems(3, roots.Hash{1}), rootsItems(3, roots.Hash{2})
	if _, err := a.Encode(); err != nil {
		t.Error(err)
	}
	if d := ledger.Compare(map[string]ledger.Ledger{"m1": a, "m2": b, decided: a}); len(d) != 1 || d[0].Item != itemDisk {
		t.Errorf("%+v", d)
	}
}
