package rootsadmin

import (
	"errors"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
)

func TestConvertRevision(t *testing.T) {
	in := state.RootsRevision{
		Number: 4, Parent: 2, Root: strings.Repeat("ab", 32), Kind: "edit", State: state.RootsHeld, Author: "m1",
		Stats: state.RootsStats{Files: 1, Bytes: 2, Changed: 3, Removed: 4}, Audit: state.Audit{At: 1000},
	}
	out, err := convertRevision(in)
	if err != nil || out.Number != 4 || out.State != roots.StateHeld || out.Root.String() != in.Root ||
		out.Stats.Removed != 4 || out.Time>>16 != 1000 {
		t.Errorf("%+v, %v", out, err)
	}
	in.Root = "x"
	if _, err := convertRevision(in); err == nil {
		t.Error("a revision without a root")
	}
}

func TestCheckVersions(t *testing.T) {
	for _, tc := range []struct {
		name          string
		older, unseen []string
		want          string
	}{
		{"all understand it", nil, nil, ""},
		{"one is old", []string{"c"}, nil, "upgraded on c"},
		{"one was not seen yet", nil, []string{"c"}, "runs on c"},
		{"both", []string{"b", "d"}, []string{"c"}, "upgraded on b, d"},
	} {
		err := checkVersions(tc.older, tc.unseen)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err != nil && !errors.Is(err, roots.ErrNoQuorum) {
			t.Errorf("%s: not ErrNoQuorum", tc.name)
		}
	}
}
