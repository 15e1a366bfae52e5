package daemon

import (
	"testing"

	"saltclusterd/sidecar/adminapi"
)

func TestWall_NoCluster(t *testing.T) {
	n := startNode(t, "m1", t.TempDir(), "cluster_wall: {event_ids: enforce, budget: off}")
	if _, err := n.wallVerbs().Wall(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the rules of a node without a cluster: %v", err)
	}
	if _, err := n.wallVerbs().Protocols(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("the protocols of a node without a cluster: %v", err)
	}
}
