package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/saltcrypt"
)

const sessionSeedSize = 32

// found creates the cluster's consensus, unless a run before this one did.
func (m *Member) found(ctx context.Context) error {
	epoch, err := saltcrypt.NewKey()
	if err != nil {
		return err
	}
	self, ok := m.Roster.Lookup(m.cfg.Self)
	if !ok {
		return WithRecoveryHint(fmt.Errorf("%s does not know this node", RosterPath(m.cfg.Options.Paths.StateDir)))
	}
	seed := make([]byte, sessionSeedSize)
	_, _ = rand.Read(seed) // never fails (crypto/rand)
	err = m.Consensus.Bootstrap(ctx, state.Init{
		Identity: state.Identity{
			ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, IdentityFP: saltcrypt.Fingerprint(m.cfg.Public),
		},
		Founder: state.Member{
			ID: self.ID, Addr: self.Addr.String(), Fingerprint: string(self.Fingerprint), Weight: DefaultWeight,
		},
		EpochKey:    state.SecretText(epoch.Text()),
		SessionSeed: state.NewSecret(seed),
		GossipKey:   state.NewSecret(m.Record.GossipKeys[0]),
		Audit:       m.Audit("bootstrap"),
	})
	if err != nil && !errors.Is(err, consensus.ErrBootstrapped) {
		return err
	}
	return nil
}
