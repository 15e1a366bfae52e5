package daemon

import (
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/returns"
)

// One hostile member must leave places to the others, of those that a handler has for all members together.
func TestStorePlaces(t *testing.T) {
	for path, all := range map[string]int{jobs.Path: 4, returns.Path: 2} {
		if n := storePlaces()[path]; n == 0 || n >= all {
			t.Errorf("one member has %d of %d places for %s", n, all, path)
		}
	}
}
