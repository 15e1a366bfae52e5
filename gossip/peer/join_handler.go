package peer

import (
	"context"
	"net/netip"

	"saltclusterd/gossip/node"
)

// SecretCluster is the secret id of the option cluster_secret; other ids are for one-time tokens.
const SecretCluster = ""

// JoinHandler is the member's side of a join. Its methods are called from several goroutines.
type JoinHandler interface {
	// JoinSecret returns the secret of that id; false: there is none. It must not take long, for anyone can ask.
	JoinSecret(id string) ([]byte, bool)
	// ClusterID returns the option cluster_id.
	ClusterID() string
	// SignChannel signs message with the cluster's RSA key (RSA-PSS, SHA-256) and returns the public key's PEM text; see ClusterKey.
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
	SecretID    string         // which secret it proved
	Payload     []byte         // JoinConfig.Payload, at most MaxJoinPayload bytes; the joiner's own words
}

// Entry returns the roster entry for the joiner.
func (r JoinRequest) Entry() node.Entry {
	return node.Entry{ID: r.ID, Addr: r.Advertise, Fingerprint: r.Fingerprint}
}
