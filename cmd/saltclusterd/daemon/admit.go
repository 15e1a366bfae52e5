package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/peer"
)

// host is the member's side of a join (peer.JoinHandler).
type host struct {
	m               *member
	signer          *peer.ClusterKey
	private, public []byte
}

// JoinSecrets returns what the cluster has agreed on, or else the configured cluster_secret.
func (h *host) JoinSecrets() []peer.JoinSecret {
	agreed := h.m.cons.View().JoinSecrets()
	accepted := []state.JoinSecret{agreed.Current}
	if agreed.Overlap {
		accepted = append(accepted, agreed.Former)
	}
	var out []peer.JoinSecret
	for _, s := range accepted {
		switch {
		case s.N > 0:
			out = append(out, peer.JoinSecret{N: s.N, Key: peer.SecretBytes(s.Key.Text())})
		case h.m.d.cfg.Cluster.Secret.IsSet():
			out = append(out, peer.JoinSecret{Key: peer.SecretBytes(h.m.d.cfg.Cluster.Secret.Reveal())})
		}
	}
	return out
}

// JoinToken returns what proofs of a token are checked with.
func (h *host) JoinToken(id string) (public []byte, ok bool) {
	t, ok := h.m.cons.View().JoinToken(id)
	return t.Public, ok
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
	if slices.Contains(m.cons.Status().Voters, r.ID) {
		return nil, peer.Refusef("the node %q votes in this cluster: when it has lost its memory, run saltclusterctl remove %s on a member first", r.ID, r.ID)
	}
	wish, err := parsePetition(r.Payload)
	if err != nil {
		return nil, peer.Refusef("%v", err)
	}
	if old, ok := m.cons.View().Member(r.ID); ok && old.Witness != wish.Witness {
		return nil, peer.Refusef("the node %q is a member already, and cluster_witness there has changed: run saltclusterctl remove %s first", r.ID, r.ID)
	}
	if n, of := strangeKeys(m.cons.View(), wish.Accepted); n > 0 {
		return nil, peer.Refusef("of %d minion keys that are accepted on %s the cluster does not know %d as accepted, and these minions would be turned away. "+
			"Bring them here first: saltclusterctl keys collect %s.keys there, saltclusterctl keys merge %s.keys on a member; "+
			"or join with --keys-pending, and accept them again", of, r.ID, n, r.ID, r.ID)
	}
	if !wish.Witness {
		if err := m.svc.roots.AwaitFirst(ctx); err != nil {
			return nil, err
		}
	}
	results, err := m.cons.Propose(ctx, m.admission(r, wish))
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
	private := h.private
	if wish.Witness {
		private = nil // it needs no identity, for it serves nobody
	}
	reply, err := json.Marshal(welcome{
		Version: welcomeVersion, UUID: v.Identity().UUID, Private: private, Public: h.public,
		Rev: max(v.Rev(), results[0].Rev), Generation: v.Generation(), Members: members, GossipKeys: gossipKeys(v),
	})
	if err != nil {
		return nil, fmt.Errorf("encode welcome: %w", err)
	}
	return reply, nil
}

// admission is the command that takes a joiner in. Where nothing but the configured secret counts, it is the one that
// members of every version know.
func (m *member) admission(r peer.JoinRequest, wish petition) state.Command {
	add := state.MemberAdd{
		ID: r.ID, Addr: r.Advertise.String(), Fingerprint: string(r.Fingerprint), Weight: defaultWeight, Witness: wish.Witness,
		Audit: m.audit("join"),
	}
	if r.Token == "" && r.Secret == 0 && m.cons.View().JoinSecrets().Current.N == 0 {
		return add
	}
	return state.JoinAdmit{Member: add, Token: r.Token, Secret: r.Secret, Audit: add.Audit}
}

func parseWelcome(b []byte) (welcome, error) {
	var w welcome
	if err := json.Unmarshal(b, &w); err != nil {
		return w, fmt.Errorf("read the cluster's welcome: %w", err)
	}
	return w, nil
}
