package daemon

import (
	"slices"

	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
)

// jobRules say which nodes shall have a job: its replicas. A node that has it besides, for it published it, must not know
// of more returns.
func (s *service) jobRules() ledger.Rules {
	var last string
	var replicas []node.ID
	return ledger.Rules{
		Needs: func(id, jid string) bool { // asked for one job after the other
			if jid != last || replicas == nil {
				last, replicas = jid, s.m.jobReplicas(jid)
			}
			return slices.Contains(replicas, node.ID(id))
		},
		More: jobs.More,
	}
}
