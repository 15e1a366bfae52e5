package keysadmin

import (
	"fmt"
	"strings"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
)

// maxNamedKeys bounds how many held keys a check names.
const maxNamedKeys = 5

// CheckHeld warns of keys that are held on a node until an operator decides about them.
func CheckHeld(self node.ID, ids []string) health.Result {
	if len(ids) == 0 {
		return health.Result{Level: health.OK}
	}
	named := strings.Join(ids[:min(len(ids), maxNamedKeys)], " ")
	if len(ids) > maxNamedKeys {
		named += " …"
	}
	return health.Result{
		Level: health.Warn,
		Reason: fmt.Sprintf("%d accepted keys were deleted, rejected or replaced on this host and were restored, "+
			"because they were many at once or thorium deletes keys here: %s", len(ids), named),
		Hint: fmt.Sprintf("on %s: saltclusterctl keys held --delete to delete them, "+
			"saltclusterctl keys held --keep to keep them", self),
	}
}
