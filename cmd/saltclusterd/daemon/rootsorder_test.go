package daemon

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

// paths of file_roots of the environment base.
func basePaths(dirs ...string) rootsPaths {
	out := rootsPaths{}
	for i, d := range dirs {
		if d != "" {
			out[roots.SlotName{Kind: "file", Env: "base", Pos: i}] = d
		}
	}
	return out
}

func TestPathsAreBelowTheRootDir(t *testing.T) {
	slots := []roots.Slot{
		{Name: roots.SlotName{Kind: "file", Env: "base"}, Dir: "/lab/m1/srv/salt"},
		{Name: roots.SlotName{Kind: "file", Env: "base", Pos: 1}, Dir: "/lab/m10/x"},
	}
	if got := pathsOf(slots, "/lab/m1/").list("file", "base"); got != "/srv/salt, /lab/m10/x" {
		t.Error(got)
	}
	if got := pathsOf(slots, "/").list("file", "base"); got != "/lab/m1/srv/salt, /lab/m10/x" {
		t.Error(got)
	}
}

func TestOrderOfDirectories(t *testing.T) {
	for name, tc := range map[string]struct {
		self   rootsPaths
		others map[node.ID]rootsPaths
		bad    int
		notes  []string
	}{
		"alone":       {basePaths("/a", "/b"), nil, 0, nil},
		"alike":       {basePaths("/a", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/a", "/b")}, 0, nil},
		"other names": {basePaths("/a", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/x", "/y")}, 0, nil},
		"two nodes, another order": {
			basePaths("/a", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/b", "/a")}, 2, nil,
		},
		"one of three differs": {
			basePaths("/a", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/b", "/a"), "m3": basePaths("/a", "/b")}, 0,
			[]string{"m2 lists /b, /a; this node lists /a, /b; they are left alone there"},
		},
		"this one of three differs": {
			basePaths("/b", "/a"), map[node.ID]rootsPaths{"m2": basePaths("/a", "/b"), "m3": basePaths("/a", "/b")}, 2, nil,
		},
		"one in front of all": {
			basePaths("/new", "/a"), map[node.ID]rootsPaths{"m2": basePaths("/a")}, 2,
			[]string{"file:base:1 (/a) is not in the configuration of m2"},
		},
		"one more at the end": {
			basePaths("/a", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/a")}, 0, []string{"file:base:1 (/b) is not in the configuration of m2"},
		},
		"one less at the end": {
			basePaths("/a"), map[node.ID]rootsPaths{"m2": basePaths("/a", "/b")}, 0, []string{"file:base:1 (m2: /b) is not in the configuration of this"},
		},
		"a gap": {basePaths("", "/b"), map[node.ID]rootsPaths{"m2": basePaths("/b")}, 1, []string{"file:base:0", "file:base:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad, notes := ordered(tc.self, tc.others)
			if len(bad) != tc.bad {
				t.Errorf("%v", bad)
			}
			for _, reason := range bad {
				if !strings.Contains(reason, "another order") || !strings.Contains(reason, "list them alike") {
					t.Error(reason)
				}
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("%q", notes)
			}
			for i, want := range tc.notes {
				if !strings.Contains(notes[i], want) {
					t.Errorf("%q, want %q", notes[i], want)
				}
			}
		})
	}
}

// Nothing is decided before those have answered who are alive.
func TestOrderIsAwaited(t *testing.T) {
	var answers atomic.Bool
	asked := make(chan struct{}, 1)
	o := &rootsOrder{
		self: basePaths("/b", "/a"), others: func() []node.ID { return []node.ID{"m2"} }, alive: func(node.ID) bool { return true },
		first: make(chan struct{}), said: map[node.ID]rootsPaths{},
		ask: func(context.Context, node.ID) (rootsPaths, error) {
			defer func() {
				select {
				case asked <- struct{}{}:
				default:
				}
			}()
			if !answers.Load() {
				return nil, errors.New("starting")
			}
			return basePaths("/a", "/b"), nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.run(ctx); close(done) }()
	<-asked
	ended, end := context.WithCancel(ctx)
	end()
	if bad := o.Bad(ended); bad != nil {
		t.Errorf("decided early: %v", bad)
	}
	answers.Store(true)
	if bad := o.Bad(ctx); len(bad) != 2 {
		t.Errorf("%v", bad)
	}
	cancel()
	<-done
}
