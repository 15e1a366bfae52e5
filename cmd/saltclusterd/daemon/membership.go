package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

// membershipVersion is the format of membership.json that this build writes and the only one it reads.
const membershipVersion = 1

// membership is what a node must remember to find back into its cluster after a restart, before consensus can tell it
// anything; whom it trusts on the peer port stands in the saved roster (peer.Book) beside it. Consensus stays the authority.
type membership struct {
	Version    int      `json:"version"`
	ClusterID  string   `json:"cluster_id"`
	UUID       string   `json:"uuid"`
	Node       node.ID  `json:"node"`
	Founder    bool     `json:"founder,omitempty"` // consensus is born here if it is not yet
	Witness    bool     `json:"witness,omitempty"`
	Born       bool     `json:"born,omitempty"` // consensus has spoken here: it must not be gone at the next start
	Generation uint64   `json:"generation,omitempty"`
	GossipKeys [][]byte `json:"gossip_keys"` // the primary first
}

// equal says whether both would be stored alike.
func (m *membership) equal(o *membership) bool {
	return m.Founder == o.Founder && m.Born == o.Born && m.Generation == o.Generation &&
		slices.EqualFunc(m.GossipKeys, o.GossipKeys, bytes.Equal)
}

func rosterPath(stateDir string) string { return filepath.Join(stateDir, "roster.json") }

func membershipPath(stateDir string) string { return filepath.Join(stateDir, "membership.json") }

// startAnew is what remains to do where a file in state_dir is missing or damaged without which a node does not know who it is.
const startAnew = "bring it back from a backup, or saltclusterctl remove this node on another one, empty state_dir here, and join again; " +
	"if there is no other node, restore a snapshot"

// damaged says what remains to do where a file in state_dir is no good. One that may not be read is neither missing nor damaged.
func damaged(err error) error {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, startAnew)
}

// readMembership returns nil when this node belongs to no cluster.
func readMembership(stateDir string) (*membership, error) {
	text, err := os.ReadFile(membershipPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	var m membership
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, damaged(fmt.Errorf("read %s: %w", membershipPath(stateDir), err))
	}
	if m.Version != membershipVersion {
		return nil, fmt.Errorf("%s has version %d, this saltclusterd reads version %d: was it written by a newer one?",
			membershipPath(stateDir), m.Version, membershipVersion)
	}
	return &m, nil
}

// write stores m, readable by its owner only: it holds the gossip keys.
func (m *membership) write(stateDir string) error {
	m.Version = membershipVersion
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode membership: %w", err)
	}
	return durable.WriteFile(membershipPath(stateDir), append(text, '\n'), 0o600)
}
