package membership

import (
	"context"
	"slices"
	"strings"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
)

// CheckNetwork warns while this node reaches members through others only.
func (m *Member) CheckNetwork(context.Context) health.Result { return judgeNetwork(m.Port.Tunnelled()) }

func judgeNetwork(through []node.ID) health.Result {
	if len(through) == 0 {
		return health.Result{Level: health.OK}
	}
	names := make([]string, len(through))
	for i, id := range through {
		names[i] = string(id)
	}
	slices.Sort(names)
	return health.Result{
		Level: health.Warn, Reason: "this node reaches " + strings.Join(names, ", ") + " through other nodes only",
		Hint: "check the network between them on the peer port (tcp), both ways",
	}
}
