package joining

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// Log is what the members agree on.
type Log interface {
	View() state.View
	Status() consensus.Status
	Propose(context.Context, ...state.Command) ([]state.Result, error)
}

// AdmissionConfig is what an Admission needs from a running membership.
type AdmissionConfig struct {
	Self      node.ID
	ClusterID string
	Secret    config.Secret // the option cluster_secret
	Public    string        // clean text of the cluster's public key
	Log       func() Log    // called when nodes or operators ask, because consensus is made after the peer port

	Alive      func(node.ID) bool
	Supported  func(level uint16) error                                   // by all members, see state.Level
	Decide     func(context.Context, state.Command) (state.Result, error) // with errors for operators
	Audit      func(cause string) state.Audit                             // of a command that this node proposes
	AwaitRoots func(context.Context) error                                // until the founder's trees are the cluster's
	SigningKey func() ([]byte, error)                                     // of the local master; nil: it does not sign

	Logger *slog.Logger
}

// Admission decides which nodes become members.
type Admission struct{ cfg AdmissionConfig }

// NewAdmission returns the Admission of a membership.
func NewAdmission(cfg AdmissionConfig) *Admission { return &Admission{cfg} }

// Handler returns the member's side of a join for a member that has the cluster's key pair.
func (a *Admission) Handler(private, public []byte) (peer.JoinHandler, error) {
	signer, err := peer.ParseClusterKey(private, public)
	if err != nil {
		return nil, err
	}
	return &handler{a.cfg, signer, private, public}, nil
}

// handler implements peer.JoinHandler.
type handler struct {
	cfg             AdmissionConfig
	signer          *peer.ClusterKey
	private, public []byte
}

// JoinSecrets returns the secrets that consensus has agreed on, or else the configured one.
func (h *handler) JoinSecrets() []peer.JoinSecret {
	agreed := h.cfg.Log().View().JoinSecrets()
	accepted := []state.JoinSecret{agreed.Current}
	if agreed.Overlap {
		accepted = append(accepted, agreed.Former)
	}
	var out []peer.JoinSecret
	for _, s := range accepted {
		switch {
		case s.N > 0:
			out = append(out, peer.JoinSecret{N: s.N, Key: peer.SecretBytes(s.Key.Text())})
		case h.cfg.Secret.IsSet():
			out = append(out, peer.JoinSecret{Key: peer.SecretBytes(h.cfg.Secret.Reveal())})
		}
	}
	return out
}

// JoinToken returns the key that proofs of a token are checked with.
func (h *handler) JoinToken(id string) (public []byte, ok bool) {
	t, ok := h.cfg.Log().View().JoinToken(id)
	return t.Public, ok
}

// ClusterID returns the option cluster_id.
func (h *handler) ClusterID() string { return h.cfg.ClusterID }

// SignChannel proves that this member has the cluster's key.
func (h *handler) SignChannel(message []byte) (sig, pubPEM []byte, err error) {
	return h.signer.SignChannel(message)
}

// Admit takes a node onto the roster and returns what it needs to start as a member.
func (h *handler) Admit(ctx context.Context, r peer.JoinRequest) ([]byte, error) {
	v := h.cfg.Log().View()
	old, isMember := v.Member(r.ID)
	if isMember && old.Fingerprint != string(r.Fingerprint) {
		return nil, peer.Refusef("a node %q is already a member, with another certificate: "+
			"give the new node another id, or remove the old one first", r.ID)
	}
	if slices.Contains(h.cfg.Log().Status().Voters, r.ID) {
		return nil, peer.Refusef("the node %q votes in this cluster: "+
			"if it has lost its state_dir, first run saltclusterctl remove %s on a member", r.ID, r.ID)
	}
	wish, err := parseRequestPayload(r.Payload)
	if err != nil {
		return nil, peer.Refusef("%v", err)
	}
	if isMember && old.Witness != wish.Witness {
		return nil, peer.Refusef("the node %q is already a member, and its option cluster_witness has changed: "+
			"run saltclusterctl remove %s first", r.ID, r.ID)
	}
	if n, of := countUnknownKeys(v, wish.Accepted); n > 0 {
		return nil, peer.Refusef("the cluster has not accepted %d of the %d minion keys accepted on %s; "+
			"these minions would be refused. Merge the keys first: run saltclusterctl keys collect %s.keys there, copy the file to a member, "+
			"and run saltclusterctl keys merge %s.keys on it; or join with --keys-pending and accept them afterwards",
			n, of, r.ID, r.ID, r.ID)
	}
	if !wish.Witness {
		if err := h.cfg.AwaitRoots(ctx); err != nil {
			return nil, err
		}
	}
	results, err := h.cfg.Log().Propose(ctx, h.admitCommand(r, wish))
	if err != nil {
		return nil, fmt.Errorf("add %s to the members: %w", r.ID, err)
	}
	if err := results[0].Err(); err != nil {
		return nil, peer.Refusef("the cluster does not admit the node %q: %v", r.ID, err)
	}
	h.cfg.Logger.Info("node joined", "node", r.ID, "remote", r.Remote, "addr", r.Advertise)
	return h.replyTo(r, wish, results[0].Rev)
}

// replyTo encodes the reply to a node that was admitted at a revision, which may not have arrived here yet.
func (h *handler) replyTo(r peer.JoinRequest, wish requestPayload, rev uint64) ([]byte, error) {
	v := h.cfg.Log().View()
	members := membership.Roster(v, h.cfg.Logger)
	if _, ok := v.Member(r.ID); !ok {
		members = append(members, r.Entry())
	}
	private := h.private
	if wish.Witness {
		private = nil
	}
	var signing []byte
	if wish.Signs && !wish.Witness {
		var err error
		if signing, err = h.cfg.SigningKey(); err != nil { // status compares what the masters sign with
			h.cfg.Logger.Warn("the node that joins gets no signing key (master_sign_pubkey)", "node", r.ID, "err", err)
		}
	}
	reply, err := json.Marshal(replyPayload{
		Version: replyVersion, UUID: v.Identity().UUID, Private: private, Public: h.public, Signing: signing,
		Rev: max(v.Rev(), rev), Generation: v.Generation(), Members: members, GossipKeys: membership.GossipKeys(v),
	})
	if err != nil {
		return nil, fmt.Errorf("encode join reply: %w", err)
	}
	return reply, nil
}

// admitCommand returns the command that adds a node. If only the configured secret is in use it is one that members of
// every version support.
func (h *handler) admitCommand(r peer.JoinRequest, wish requestPayload) state.Command {
	add := state.MemberAdd{
		ID: r.ID, Addr: r.Advertise.String(), Fingerprint: string(r.Fingerprint), Weight: membership.DefaultWeight,
		Witness: wish.Witness, Audit: h.cfg.Audit("join"),
	}
	if r.Token == "" && r.Secret == 0 && h.cfg.Log().View().JoinSecrets().Current.N == 0 {
		return add
	}
	return state.JoinAdmit{Member: add, Token: r.Token, Secret: r.Secret, Audit: add.Audit}
}
