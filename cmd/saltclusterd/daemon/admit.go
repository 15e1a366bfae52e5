package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/peer"
)

// host is the member's side of a join (peer.JoinHandler).
type host struct {
	m               *member
	signer          *peer.ClusterKey
	private, public []byte
}

// JoinSecret returns the configured cluster_secret.
func (h *host) JoinSecret(id string) ([]byte, bool) {
	if id != peer.SecretCluster || !h.m.d.cfg.Cluster.Secret.IsSet() {
		return nil, false
	}
	return peer.SecretBytes(h.m.d.cfg.Cluster.Secret.Reveal()), true
}

// ClusterID returns the option cluster_id.
func (h *host) ClusterID() string { return h.m.seed.ClusterID }

// SignChannel proves that we hold the cluster's key.
func (h *host) SignChannel(message []byte) (sig, pubPEM []byte, err error) {
	return h.signer.SignChannel(message)
}

// Admit takes the joiner onto the roster and tells it what it needs to find in.
func (h *host) Admit(ctx context.Context, r peer.JoinRequest) ([]byte, error) {
	m := h.m
	if old, ok := m.cons.View().Member(r.ID); ok && old.Fingerprint != string(r.Fingerprint) {
		return nil, peer.Refusef("a node %q is a member already, with another certificate: "+
			"give the new node another id, or remove the old one first", r.ID)
	}
	results, err := m.cons.Propose(ctx, state.MemberAdd{
		ID: r.ID, Addr: r.Advertise.String(), Fingerprint: string(r.Fingerprint), Weight: defaultWeight, Audit: m.audit("join"),
	})
	if err != nil {
		return nil, fmt.Errorf("take %s onto the roster: %w", r.ID, err)
	}
	if err := results[0].Err(); err != nil {
		return nil, peer.Refusef("the cluster does not take the node %q in: %v", r.ID, err)
	}
	m.log.Info("node joined", "node", r.ID, "remote", r.Remote, "addr", r.Advertise)
	v := m.cons.View()
	members := m.entries(v)
	if _, ok := v.Member(r.ID); !ok { // decided by the leader, on its way to us
		members = append(members, r.Entry())
	}
	reply, err := json.Marshal(welcome{
		Version: welcomeVersion, UUID: v.Identity().UUID, Private: h.private, Public: h.public,
		Rev: max(v.Rev(), results[0].Rev), Generation: v.Generation(), Members: members, GossipKeys: gossipKeys(v),
	})
	if err != nil {
		return nil, fmt.Errorf("encode welcome: %w", err)
	}
	return reply, nil
}

func parseWelcome(b []byte) (welcome, error) {
	var w welcome
	if err := json.Unmarshal(b, &w); err != nil {
		return w, fmt.Errorf("read the cluster's welcome: %w", err)
	}
	return w, nil
}
