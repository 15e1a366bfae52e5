package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

// recordVersion is the format of membership.json that this build writes and the only one it reads.
const recordVersion = 1

// Record is what a node needs to find its cluster again after a restart, until consensus can tell it more. The saved
// roster (peer.Book) beside it lists the members to trust on the peer port. Consensus stays the authority.
type Record struct {
	Version    int      `json:"version"`
	ClusterID  string   `json:"cluster_id"`
	UUID       string   `json:"uuid"`
	Node       node.ID  `json:"node"`
	Founder    bool     `json:"founder,omitempty"` // this node bootstraps consensus if that was not done yet
	Witness    bool     `json:"witness,omitempty"`
	Born       bool     `json:"born,omitempty"` // consensus has state here, which must be there at the next start
	Generation uint64   `json:"generation,omitempty"`
	GossipKeys [][]byte `json:"gossip_keys"` // the primary first
}

// Equal compares what may change during a membership.
func (r *Record) Equal(o *Record) bool {
	return r.Founder == o.Founder && r.Born == o.Born && r.Generation == o.Generation &&
		slices.EqualFunc(r.GossipKeys, o.GossipKeys, bytes.Equal)
}

// ReadRecord returns nil when the node belongs to no cluster.
func ReadRecord(stateDir string) (*Record, error) {
	path := RecordPath(stateDir)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, WithRecoveryHint(fmt.Errorf("read %s: %w", path, err))
	}
	if err := CheckVersion(path, r.Version, recordVersion); err != nil {
		return nil, err
	}
	return &r, nil
}

// CheckVersion refuses a file of state_dir that another version of saltclusterd has written in another format.
func CheckVersion(path string, has, want int) error {
	if has != want {
		return fmt.Errorf("%s has version %d, this saltclusterd reads version %d: was it written by a newer one?",
			path, has, want)
	}
	return nil
}

// Write stores the record, readable by its owner only because it holds the gossip keys.
func (r *Record) Write(stateDir string) error {
	r.Version = recordVersion
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode membership: %w", err)
	}
	return durable.WriteFile(RecordPath(stateDir), append(text, '\n'), 0o600)
}

// RecoveryHint tells an operator what to do when a file in state_dir that identifies the node is missing or damaged.
const RecoveryHint = "restore it from a backup; or run saltclusterctl remove for this node on another node, " +
	"empty state_dir here, and join again; if there is no other node, restore a snapshot"

// WithRecoveryHint adds RecoveryHint to the error of a file in state_dir, unless only permission to read it is lacking.
func WithRecoveryHint(err error) error {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, RecoveryHint)
}

// Validate refuses a record that belongs to something else than the configuration names.
func (r *Record) Validate(options *config.Config) error {
	stateDir := options.Paths.StateDir
	switch {
	case string(r.Node) != options.ID:
		return fmt.Errorf("%s belongs to the node %q, but the option id is %q: set id to the former name, or use another state_dir",
			stateDir, r.Node, options.ID)
	case r.Witness != options.Cluster.Witness:
		return fmt.Errorf("this node became a member when cluster_witness was %t, but the option is %t: "+
			"remove it from the cluster, empty %s and join again", r.Witness, options.Cluster.Witness, stateDir)
	case r.ClusterID != options.Cluster.ID:
		return fmt.Errorf("this node is a member of the cluster %q, but the option cluster_id is %q", r.ClusterID,
			options.Cluster.ID)
	}
	return nil
}
