package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"saltclusterd/cmd/saltclusterd/membership"
)

// A witness votes and does nothing else: it has no salt-master, serves no minions and is not given the cluster's identity. It
// is the third voice of a cluster of two. A member without a service (member.svc nil) is one.

// petition is what a joiner asks for (peer.JoinConfig.Payload); empty from a version that knew no witness.
type petition struct {
	Witness bool `json:"witness,omitempty"`
	// Accepted are hashes of keys that its salt-master has accepted before it came here (newcomer.hashes).
	Accepted []byte `json:"accepted,omitempty"`
}

func parsePetition(b []byte) (petition, error) {
	var p petition
	if len(b) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, errors.New("what the joining node asks for is not understood: are the versions of saltclusterd alike?")
	}
	return p, nil
}

func (d *Daemon) petition(accepted []byte) ([]byte, error) {
	b, err := json.Marshal(petition{Witness: d.witness(), Accepted: accepted})
	if err != nil {
		return nil, fmt.Errorf("encode petition: %w", err)
	}
	return b, nil
}

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
