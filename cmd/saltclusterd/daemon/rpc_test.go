package daemon

import (
	"testing"

	"saltclusterd/sidecar/returns"
)

// One hostile member must leave places to the others, of those that a handler has for all members together.
func TestPlaces(t *testing.T) {
	if n, all := places[returns.Path], 2; n == 0 || n >= all {
		t.Errorf("one member has %d of %d places for returns", n, all)
	}
}
