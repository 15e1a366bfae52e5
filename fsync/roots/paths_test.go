package roots

import (
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
)

// basePaths are directories of file_roots, environment base.
func basePaths(dirs ...string) Paths {
	out := Paths{}
	for i, d := range dirs {
		if d != "" {
			out[SlotName{Kind: "file", Env: "base", Pos: i}] = d
		}
	}
	return out
}

func TestPathsOf_RootDir(t *testing.T) {
	slots := []Slot{
		{Name: SlotName{Kind: "file", Env: "base"}, Dir: "/lab/m1/srv/salt"},
		{Name: SlotName{Kind: "file", Env: "base", Pos: 1}, Dir: "/lab/m10/x"},
	}
	check.Equal(t, PathsOf(slots, "/lab/m1/").list("file", "base"), "/srv/salt, /lab/m10/x")
	check.Equal(t, PathsOf(slots, "/").list("file", "base"), "/lab/m1/srv/salt, /lab/m10/x")
}

func TestPaths_Compare(t *testing.T) {
	for name, tc := range map[string]struct {
		self   Paths
		others map[node.ID]Paths
		bad    int
		notes  []string
	}{
		"alone":       {basePaths("/a", "/b"), nil, 0, nil},
		"alike":       {basePaths("/a", "/b"), map[node.ID]Paths{"m2": basePaths("/a", "/b")}, 0, nil},
		"other names": {basePaths("/a", "/b"), map[node.ID]Paths{"m2": basePaths("/x", "/y")}, 0, nil},
		"two nodes, another order": {
			basePaths("/a", "/b"), map[node.ID]Paths{"m2": basePaths("/b", "/a")}, 2, nil,
		},
		"one of three differs": {
			basePaths("/a", "/b"), map[node.ID]Paths{"m2": basePaths("/b", "/a"), "m3": basePaths("/a", "/b")}, 0,
			[]string{"m2 lists /b, /a; this node lists /a, /b; they are not replicated there"},
		},
		"this one of three differs": {
			basePaths("/b", "/a"), map[node.ID]Paths{"m2": basePaths("/a", "/b"), "m3": basePaths("/a", "/b")}, 2, nil,
		},
		"one in front of all": {
			basePaths("/new", "/a"), map[node.ID]Paths{"m2": basePaths("/a")}, 2,
			[]string{"file:base:1 (/a) is not in the configuration of m2"},
		},
		"one more at the end": {
			basePaths("/a", "/b"), map[node.ID]Paths{"m2": basePaths("/a")}, 0,
			[]string{"file:base:1 (/b) is not in the configuration of m2"},
		},
		"one less at the end": {
			basePaths("/a"), map[node.ID]Paths{"m2": basePaths("/a", "/b")}, 0,
			[]string{"file:base:1 (m2: /b) is not in the configuration of this"},
		},
		"a gap": {basePaths("", "/b"), map[node.ID]Paths{"m2": basePaths("/b")}, 1, []string{"file:base:0", "file:base:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad, notes := tc.self.Compare(tc.others)
			if len(bad) != tc.bad {
				t.Errorf("%v", bad)
			}
			for _, reason := range bad {
				if !strings.Contains(reason, "another order") || !strings.Contains(reason, "list them in the same order") {
					t.Error(reason)
				}
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("%q", notes)
			}
			for i, want := range tc.notes {
				check.Contains(t, notes[i], want)
			}
		})
	}
}
