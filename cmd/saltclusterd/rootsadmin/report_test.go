package rootsadmin

import (
	"testing"

	"saltclusterd/fsync/roots"
)

// TestContentPlaces: a hostile member must not take all of the places that the engine has.
func TestContentPlaces(t *testing.T) {
	if contentPlaces < 1 || contentPlaces >= roots.MaxServed {
		t.Errorf("one member has %d places of %d", contentPlaces, roots.MaxServed)
	}
}
