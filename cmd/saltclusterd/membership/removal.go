package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"saltclusterd/durable"
)

// Removal is what a node keeps after it was removed from its cluster. A node that has one joins only when an operator
// asks for it.
type Removal struct {
	Version    int       `json:"version"`
	ClusterID  string    `json:"cluster_id"`
	UUID       string    `json:"uuid"`
	Generation uint64    `json:"generation,omitempty"`
	At         time.Time `json:"at"`
	Reason     string    `json:"reason"`
}

const removalVersion = 1

// RejoinHint tells an operator what to do with a node that was removed.
const RejoinHint = "the other nodes serve its minions; to rejoin: saltclusterctl join PEER; " +
	"otherwise stop saltclusterd and the salt-master here"

// ReadRemoval returns nil when the node was not removed, or has joined again.
func ReadRemoval(stateDir string) (*Removal, error) {
	text, err := os.ReadFile(RemovalPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r Removal
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RemovalPath(stateDir), err)
	}
	if err := CheckVersion(RemovalPath(stateDir), r.Version, removalVersion); err != nil {
		return nil, err
	}
	return &r, nil
}

// Sentence describes the removal for an operator.
func (r *Removal) Sentence() string {
	return fmt.Sprintf("%s (cluster %s, %s)", r.Reason, r.ClusterID, r.At.UTC().Format("2006-01-02 15:04:05Z"))
}

// End ends the membership on disk. The consensus log is put aside and not deleted, because it is all that is left if
// the other members are lost.
func (r *Record) End(stateDir, reason string) error {
	text, err := json.MarshalIndent(
		Removal{removalVersion, r.ClusterID, r.UUID, r.Generation, time.Now().UTC(), reason}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode removal: %w", err)
	}
	if err := durable.WriteFile(RemovalPath(stateDir), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(RecordPath(stateDir)), durable.SyncDir(stateDir)); err != nil {
		return fmt.Errorf("end the membership: %w", err)
	}
	return PutAside(stateDir)
}
