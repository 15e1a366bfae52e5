package membership

import (
	"slices"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

// TestSortSources: the least loaded node comes first, and none before those that serve.
func TestSortSources(t *testing.T) {
	ids := []node.ID{"starting", "busy", "idle", "unknown", "busier"}
	sortSources(ids, []router.Node{
		{ID: "idle", Alive: true}, {ID: "busier", Alive: true, Load: 90}, {ID: "busy", Alive: true, Load: 7},
		{ID: "starting"},
	})
	if want := []node.ID{"idle", "busy", "busier", "starting", "unknown"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
}
