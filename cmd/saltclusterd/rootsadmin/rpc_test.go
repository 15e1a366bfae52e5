package rootsadmin

import "testing"

// One hostile member must leave places to the others, of the six that the engine has for all members together.
func TestContentPlaces(t *testing.T) {
	if contentPlaces < 1 || contentPlaces >= 6 {
		t.Errorf("one member has %d places", contentPlaces)
	}
}
