package rotation

import (
	"context"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// SecretsConfig configures Secrets.
type SecretsConfig struct {
	Membership
	RotateInterval time.Duration    // after which an AES key is replaced; 0: after maxSeedAge
	RotateWindow   time.Duration    // over which minions are moved to another one
	Now            func() time.Time // the time of the cluster, which the log is dated with; nil: this host's
	// Revisions asks members for the revision that each has applied. Members that do not answer in time are missing.
	Revisions func(context.Context, []state.Member) map[node.ID]uint64
	// Moving tells whether subscribers of this node are still being moved by an earlier rotation.
	Moving func() bool
}

// Secrets replaces the secrets that all members share through consensus: AES key, session seed and gossip key.
type Secrets struct{ cfg SecretsConfig }

// NewSecrets returns a Secrets. It starts nothing.
func NewSecrets(cfg SecretsConfig) *Secrets {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Secrets{cfg: cfg}
}

// Kinds returns what operators can have replaced, by RotateRequest.What.
func (s *Secrets) Kinds() map[string]Func {
	return map[string]Func{
		adminapi.RotateAES:       s.rotateAES,
		adminapi.RotateGossipKey: s.rotateGossipKey,
	}
}
