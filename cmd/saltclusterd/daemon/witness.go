package daemon

import (
	"encoding/json"
	"errors"
	"fmt"

	"saltclusterd/sidecar/adminapi"
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
	return adminapi.Errorf(adminapi.CodeRefused, "run it on a node with a salt-master", "a witness does not have the cluster's identity, so it cannot %s", what)
}
