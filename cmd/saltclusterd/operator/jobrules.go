package operator

import (
	"slices"

	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
)

// JobRules returns the rules of a ledger of jobs. Replicas must have a job; its publisher may have it as well, but
// must not have more returns. The rules are for one comparison: they are not safe for concurrent use.
func JobRules(replicasOf func(jid string) []node.ID) ledger.Rules {
	var last string
	var replicas []node.ID
	return ledger.Rules{
		Needs: func(id, jid string) bool { // called for one job after the other
			if jid != last || replicas == nil {
				last, replicas = jid, replicasOf(jid)
			}
			return slices.Contains(replicas, node.ID(id))
		},
		More: jobs.More,
	}
}
