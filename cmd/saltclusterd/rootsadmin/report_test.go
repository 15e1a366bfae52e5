package rootsadmin

import (
	"testing"

	"saltclusterd/fsync/content"
)

// TestContentPlaces: a hostile member must not take all of the places that the engine has.
func TestContentPlaces(t *testing.T) {
	if contentPlaces < 1 || contentPlaces >= content.MaxServed {
		t.Errorf("one member has %d places of %d", contentPlaces, content.MaxServed)
	}
}
