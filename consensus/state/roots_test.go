package state

import (
	"strings"
	"testing"

	"saltclusterd/gossip/node"
)

func rootsCommands() []Command {
	a := Audit{By: "m1", At: 5, Cause: "test"}
	return []Command{
		RootsPropose{Parent: 3, Author: "m1", Root: testFP('a'), Kind: "edit", Held: true, Note: "a <note>",
			Stats: RootsStats{Files: 5, Bytes: 1 << 40, Changed: 1, Removed: 2}, Audit: a},
		RootsConfirm{Number: 4, Audit: a},
		RootsDrop{Number: 4, Audit: a},
	}
}

func TestRootsCommands(t *testing.T) {
	propose := func(parent uint64, author, root string, held bool) RootsPropose {
		return RootsPropose{Parent: parent, Author: node.ID(author), Root: testFP(root[0]), Kind: "edit", Held: held}
	}
	steps := []struct {
		name string
		cmd  Command
		code Code
		rev  uint64
		head uint64
	}{
		{"confirm nothing", RootsConfirm{Number: 1}, NotFound, 0, 0},
		{"first on a parent", propose(1, "m1", "a", false), Conflict, 0, 0},
		{"first", propose(0, "m1", "a", false), OK, 1, 1},
		{"first once more", propose(0, "m2", "b", false), Conflict, 1, 1},
		{"the same tree", propose(1, "m2", "a", false), OK, 1, 1},
		{"on hold", propose(1, "m2", "b", true), OK, 2, 1},
		{"on hold, of another", propose(1, "m1", "c", true), OK, 3, 1},
		{"on hold once more", propose(1, "m2", "d", true), OK, 4, 1},
		{"confirm what was replaced", RootsConfirm{Number: 2}, NotFound, 0, 1},
		{"confirm what is in force", RootsConfirm{Number: 1}, Conflict, 1, 1},
		{"confirm", RootsConfirm{Number: 4}, OK, 4, 4},
		{"confirm what became old", RootsConfirm{Number: 3}, Conflict, 4, 4},
		{"drop it", RootsDrop{Number: 3}, OK, 3, 4},
		{"drop it again", RootsDrop{Number: 3}, Conflict, 3, 4},
		{"drop what is in force", RootsDrop{Number: 4}, Conflict, 4, 4},
		{"go on", propose(4, "m1", "a", false), OK, 5, 5},
		{"bad root", RootsPropose{Parent: 5, Author: "m1", Root: "abc"}, Invalid, 0, 5},
		{"bad author", propose(5, "../m", "b", false), Invalid, 0, 5},
		{"long note", RootsPropose{Parent: 5, Author: "m1", Root: testFP('a'), Note: strings.Repeat("x", MaxText+1)}, Invalid,
			0, 5},
		{"negative", RootsPropose{Parent: 5, Author: "m1", Root: testFP('a'), Stats: RootsStats{Files: -1}}, Invalid, 0, 5},
	}
	s := born(t)
	for _, st := range steps {
		before := s.View().Rev()
		r := s.ApplyCommands(st.cmd)[0]
		head, _ := s.View().RootsHead()
		if r.Code != st.code || r.Rev != st.rev || head.Number != st.head {
			t.Fatalf("%s: %+v, head %d", st.name, r, head.Number)
		}
		if r.Code != OK && s.View().Rev() != before {
			t.Errorf("%s: a refusal made a revision", st.name)
		}
		check(t, s)
	}
}

func TestRootsHistoryIsBounded(t *testing.T) {
	s := born(t)
	for i := range uint64(3 * MaxRoots) {
		root := testFP("0123456789abcdef"[i%16])
		if r := s.ApplyCommands(RootsPropose{Parent: i, Author: "m1", Root: root})[0]; r.Code != OK {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	revs := s.View().RootsRevisions()
	if len(revs) != MaxRoots || revs[len(revs)-1].Number != 3*MaxRoots || revs[0].Number != 2*MaxRoots+1 {
		t.Errorf("%d revisions, %d to %d", len(revs), revs[0].Number, revs[len(revs)-1].Number)
	}
	check(t, s)
	for i := range MaxRootsHeld + 1 {
		r := s.ApplyCommands(RootsPropose{Parent: 3 * MaxRoots, Author: node.ID("n" + strings.Repeat("x", i)),
			Root: testFP('a'), Held: true})[0]
		if want := map[bool]Code{true: OK, false: LimitReached}[i < MaxRootsHeld]; r.Code != want {
			t.Errorf("on hold %d: %+v", i, r)
		}
	}
	head, ok := s.View().RootsHead()
	if !ok || head.Number != 3*MaxRoots {
		t.Errorf("the head was forgotten: %+v", head)
	}
	check(t, s)
}

func TestRootsSnapshotRefuses(t *testing.T) {
	lines := strings.SplitAfter(dump(t, filled(t).View()), "\n")
	for name, change := range map[string][2]string{
		"the head is missing":    {`"head":4`, `"head":1`},
		"numbers not in order":   {`"number":2`, `"number":1`},
		"parent after the child": {`"number":2,"parent":1`, `"number":2,"parent":2`},
		"unknown state":          {`"state":"dropped"`, `"state":"lost"`},
		"from the future":        {`"last":4`, `"last":99`},
		"bad root":               {testFP('4'), "44"},
	} {
		text := strings.Join(lines, "")
		if !strings.Contains(text, change[0]) {
			t.Fatalf("%s: no %s in\n%s", name, change[0], text)
		}
		if _, err := ReadSnapshot(strings.NewReader(strings.Replace(text, change[0], change[1], 1))); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}
