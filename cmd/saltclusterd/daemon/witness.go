package daemon

import (
	"saltclusterd/cmd/saltclusterd/membership"
)

// A witness votes and does nothing else: it has no salt-master, serves no minions and is not given the cluster's
// identity. It is the third voice of a cluster of two. A member without a service (member.svc nil) is one.

// witness says whether this node is configured to be one.
func (d *Daemon) witness() bool { return d.cfg.Cluster.Witness }

// notOnWitness refuses what needs the cluster's identity.
func (d *Daemon) notOnWitness(what string) error {
	if !d.witness() {
		return nil
	}
	return membership.WitnessCannot(what)
}
