package rootsadmin

import "testing"

// TestContentPlaces: a hostile member must not take all of the six places that the engine has.
func TestContentPlaces(t *testing.T) {
	if contentPlaces < 1 || contentPlaces >= 6 {
		t.Errorf("one member has %d places", contentPlaces)
	}
}
