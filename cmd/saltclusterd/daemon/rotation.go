package daemon

import (
	"context"
	"time"

	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// buildRotation makes the parts that replace secrets of the cluster.
func (m *member) buildRotation() {
	cfg := m.d.cfg
	of := rotation.Membership{
		Self: m.d.id, Log: m.Consensus, Alive: m.Alive, Decide: m.decide, Undecided: undecided, NoQuorum: m.noQuorum,
		Knows: m.Knows, Logger: m.log,
	}
	m.secrets = rotation.NewSecrets(rotation.SecretsConfig{
		Membership: of, RotateInterval: cfg.Edge.RotateInterval, RotateWindow: cfg.Edge.RotateWindow,
		Revisions: m.revisions,
		Moving:    func() bool { return m.svc != nil && m.svc.pub.Stats().OnPrevious > 0 },
	})
	m.certificates = rotation.NewCertificates(rotation.CertificatesConfig{
		Membership: of, Identity: m.d.identity, StateDir: cfg.Paths.StateDir, MaxAge: cfg.Cluster.CertificateAge,
		Roster: m.Roster, Client: m.Client(), Claim: m.d.claimOperation, NotMember: m.d.errNoMember,
		Registerer: m.d.reg,
	})
}

// revisions asks members for the revision that each has applied.
func (m *member) revisions(ctx context.Context, roster []state.Member) map[node.ID]uint64 {
	out := map[node.ID]uint64{}
	for id, s := range m.allStats(ctx, roster) {
		out[id] = s.Rev
	}
	return out
}

// claimOperation blocks joins, upgrades and the like until release is called. ok is false while one is under way.
func (d *Daemon) claimOperation() (release func(), ok bool) {
	if !d.op.TryBegin() {
		return nil, false
	}
	return d.op.End, true
}

// rotations returns what operators can rotate on this node (rotation.Verbs).
func (d *Daemon) rotations() (map[string]rotation.Func, adminapi.Outcome, error) {
	m := d.current()
	if m == nil {
		return nil, adminapi.Outcome{}, d.errNoMember()
	}
	kinds := m.secrets.Kinds()
	kinds[adminapi.RotateSecret] = m.admission.RotateSecret
	kinds[adminapi.RotateCertificates], kinds[adminapi.RotateIdentity] = m.certificates.Rotate, m.identity.Rotate
	return kinds, adminapi.Outcome{
		Node: string(d.id), ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Role: adminapi.RoleVoter,
	}, nil
}

// beginEpoch puts identities, epoch and seed of v in force for minions.
func (s *service) beginEpoch(v state.View) error {
	if err := s.m.identity.AnswerBoth(v); err != nil {
		s.m.log.Error("sign-ins are answered under one identity only", "err", err)
	}
	return s.rotation.Begin(v)
}

// epochRetry is the pause after an epoch could not be put in force.
const epochRetry = time.Second

// followEpochs keeps the epoch and the links for publications up to date with consensus until ctx ends.
func (s *service) followEpochs(ctx context.Context) {
	changed := s.m.Consensus.Watch(ctx)
	for {
		v := s.m.Consensus.View()
		var again <-chan time.Time
		if err := s.beginEpoch(v); err != nil {
			s.m.log.Error("epoch not begun", "err", err)
			again = time.After(epochRetry)
		}
		s.setPeers(v)
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
		case <-again:
		}
	}
}

// setPeers makes publication links to all other members.
func (s *service) setPeers(v state.View) {
	var peers []node.ID
	for _, mem := range v.Members() {
		if !mem.Witness {
			peers = append(peers, mem.ID)
		}
	}
	s.hub.SetPeers(peers)
}
