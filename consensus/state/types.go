package state

import "saltclusterd/gossip/node"

// KeyState is what the cluster thinks of a minion key.
type KeyState string

// The states of a minion key. KeyDeleted is the target of a deleting key.set;
// no Key that a View returns carries it.
const (
	KeyDeleted  KeyState = ""
	KeyPending  KeyState = "pending"
	KeyAccepted KeyState = "accepted"
	KeyRejected KeyState = "rejected"
)

// Audit says who proposed a change, when and why. It decides nothing.
type Audit struct {
	By    node.ID `json:"by,omitempty"`    // proposing node
	At    int64   `json:"at,omitempty"`    // Unix time in milliseconds on that node
	Cause string  `json:"cause,omitempty"` // a few words, e.g. "salt-key", "auto-accept"
}

// Key is a minion key in one of the three states.
type Key struct {
	ID    string   `json:"id"`
	State KeyState `json:"state"`
	Pub   string   `json:"pub"` // text of the public key file, as stock Salt writes it
	Rev   uint64   `json:"rev"` // revision of the last change
	// Again is the revision at which the id got a key again after its key was deleted, the same one perhaps; zero: as far
	// as is remembered it never did. Noted from LevelLives on: an older node could not read a snapshot in which it stands.
	Again uint64 `json:"again,omitempty"`
	Audit
}

// KeyChange is one step of KeysSince: the present state of a key that changed,
// or its deletion (State is KeyDeleted and Pub empty).
type KeyChange struct {
	Key
	Deleted bool `json:"deleted,omitempty"`
}

// Tombstone is the memory of a deleted key.
type Tombstone struct {
	ID  string `json:"id"`
	Rev uint64 `json:"rev"`
	Audit
}

// DeniedKey is a key that was offered for an id which has another one
// (minions_denied of stock Salt). It lies beside the key of that id.
type DeniedKey struct {
	ID  string `json:"id"`
	Pub string `json:"pub"`
	Rev uint64 `json:"rev"`
	Audit
}

// Member is a node that belongs. The certificate fingerprint is the only
// authority for who may speak on the peer port.
type Member struct {
	ID          node.ID `json:"id"`
	Addr        string  `json:"addr"`        // host:port of the peer port
	Fingerprint string  `json:"fingerprint"` // SHA-256 of the certificate's DER, 64 lower-case hex digits
	Weight      int     `json:"weight"`      // share in the ring, 1..MaxWeight; 100 is usual
	Draining    bool    `json:"draining,omitempty"`
	Witness     bool    `json:"witness,omitempty"`   // votes, has no Salt master
	NonVoter    bool    `json:"non_voter,omitempty"` // never promoted
	JoinedRev   uint64  `json:"joined_rev"`
	Rev         uint64  `json:"rev"`
	Audit
}

// Epoch is one generation of the cluster's AES key. N counts from 1; zero
// means there is none.
type Epoch struct {
	N      uint64 `json:"n"`
	Key    Secret `json:"key"` // Salt's text form: base64 of 24 AES + 32 HMAC bytes
	Reason string `json:"reason,omitempty"`
	Rev    uint64 `json:"rev"`
	Audit
}

// Epochs are the epoch in force and the one before it (N zero: none).
type Epochs struct {
	Current  Epoch `json:"current"`
	Previous Epoch `json:"previous"`
}

// GossipKey is one key of the gossip keyring.
type GossipKey struct {
	N   uint64 `json:"n"`
	Key Secret `json:"key"` // 16, 24 or 32 bytes
	Rev uint64 `json:"rev"`
	Audit
}

// Identity names the cluster. It is set once, by cluster.init; IdentityFP changes with identity.switch.
type Identity struct {
	ClusterID  string `json:"cluster_id"`  // configured name
	UUID       string `json:"uuid"`        // made at birth
	IdentityFP string `json:"identity_fp"` // fingerprint of the cluster's RSA key
}
