package rootsadmin

import (
	"fmt"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/sidecar/adminapi"
)

func TestRefuse_Edited(t *testing.T) {
	t.Parallel()
	r := &Roots{}
	err := r.refuseAside(t.Context(), "X", fmt.Errorf("restore %q: %w", "f", roots.ErrEdited))
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(adminapi.HintOf(err), "sync_roots") {
		t.Errorf("%v (%s)", err, adminapi.HintOf(err))
	}
}

func TestRefuse_NotHeld(t *testing.T) {
	t.Parallel()
	held := state.Result{Code: state.Conflict, Message: "revision 3 does not wait for a confirmation"}.Err()
	got := explainRefusal("drop", fmt.Errorf("%w: %w", roots.ErrNotCurrent, held))
	if adminapi.CodeOf(got) != adminapi.CodeRefused || got.Error() != "drop: revision 3 does not wait for a confirmation" {
		t.Errorf("%v (%s)", got, adminapi.CodeOf(got))
	}
}

func TestRefuse_Hint(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		roots.ErrNoRevision, state.Result{Code: state.NotFound, Message: "there is no revision 9 of the trees"}.Err(),
	} {
		got := explainRefusal("drop", err)
		if adminapi.CodeOf(got) != adminapi.CodeNotFound || !strings.Contains(adminapi.HintOf(got), "roots history") ||
			strings.Contains(got.Error(), "not_found") {
			t.Errorf("%v: %v (%s)", err, got, adminapi.HintOf(got))
		}
	}
}
