package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/membership"
)

// A witness votes and does nothing else: it has no salt-master, serves no minions and is not given the cluster's identity. It
// is the third voice of a cluster of two. A member without a service (member.svc nil) is one.

// witness says whether this node is configured to be one.
func (d *Daemon) witness() bool { return d.cfg.Cluster.Witness }

// resign hands the leadership over before a witness stops; other nodes do it when they drain.
func (m *member) resign() {
	to := m.heir(m.d.id)
	if to == "" || m.cons.Leader() != m.d.id {
		return
	}
	ctx, cancel := context.WithTimeout(m.patience(), handTimeout)
	defer cancel()
	if err := m.cons.TransferLeadership(ctx, to); err != nil {
		m.log.Warn("leadership not handed over", "node", to, "err", err)
	}
}

// saltVersion is the local salt-master's; empty on a witness.
func (d *Daemon) saltVersion() string {
	if d.master == nil {
		return ""
	}
	return d.master.Version.String()
}

// notOnWitness refuses what needs the cluster's identity.
func (d *Daemon) notOnWitness(what string) error {
	if !d.witness() {
		return nil
	}
	return membership.WitnessCannot(what)
}
