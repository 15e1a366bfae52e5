package peer

import (
	"context"
	"net/netip"

	"saltclusterd/gossip/node"
)

// JoinSecret is a secret that the cluster accepts. Numbers mean something to the handler only.
type JoinSecret struct {
	N   uint64
	Key []byte // see SecretBytes
}

// JoinHandler is the member's side of a join. Its methods are called from several goroutines.
type JoinHandler interface {
	// JoinSecrets returns the secrets that open the door. It must not take long, for anyone can ask.
	JoinSecrets() []JoinSecret
	// JoinToken returns the public half of a token, whether it may still be used or not; false: there is none of that id.
	JoinToken(id string) (public []byte, ok bool)
	// ClusterID returns the option cluster_id.
	ClusterID() string
	// SignChannel signs message with the cluster's RSA key (RSA-PSS, SHA-256) and returns the public key's PEM text; see
	// ClusterKey.
	SignChannel(message []byte) (sig, pubPEM []byte, err error)
	// Admit takes the joiner into the roster, or refuses (return a *Refusal to tell it why). The reply, at most
	// MaxJoinReply bytes, is given to the joiner. A joiner may repeat a join whose answer it did not get.
	Admit(ctx context.Context, r JoinRequest) (reply []byte, err error)
}

// JoinRequest is what a joiner that has proved the secret asks for.
type JoinRequest struct {
	ID          node.ID
	Advertise   netip.AddrPort // where it says that others reach it
	Fingerprint node.Fingerprint
	Remote      netip.AddrPort // where the connection comes from
	ClusterID   string         // what its option cluster_id says; equal to ours
	Token       string         // the token it proved to hold; empty: it proved a secret
	Secret      uint64         // number of that secret
	Payload     []byte         // JoinConfig.Payload, at most MaxJoinPayload bytes; the joiner's own words
}

// Entry returns the roster entry for the joiner.
func (r JoinRequest) Entry() node.Entry {
	return node.Entry{ID: r.ID, Addr: r.Advertise, Fingerprint: r.Fingerprint}
}
