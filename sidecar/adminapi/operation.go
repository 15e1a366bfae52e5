package adminapi

import (
	"fmt"
	"time"
)

// Secret is text that travels from client to daemon and never prints.
type Secret string

// Format implements fmt.Formatter for every verb: a secret shows as
// "[redacted]".
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[redacted]") }

// BootstrapRequest is the body of POST /v1/bootstrap: make a new cluster out of
// this node and its master.pem.
type BootstrapRequest struct {
	Wait    bool          `json:"wait"`              // report until the node is a ready voter
	Timeout time.Duration `json:"timeout,omitempty"` // of the wait, nanoseconds; 0: as long as the client waits
}

// JoinRequest is the body of POST /v1/join: make this node a member of the
// cluster that Peer belongs to.
type JoinRequest struct {
	Peer   string `json:"peer"`             // host or host:port of any member's peer port
	Secret Secret `json:"secret,omitempty"` // empty: the configured cluster_secret
	// one-time, instead of a secret; empty: the configured one
	Token          Secret `json:"token,omitempty"`
	PubFingerprint string `json:"pub_fingerprint,omitempty"` // empty: the configured cluster_pub_fingerprint
	// also where minions here trust another master.pem than the cluster's
	ReplaceKey bool `json:"replace_key,omitempty"`
	// also where the cluster does not know minion keys that are accepted here
	KeysPending bool          `json:"keys_pending,omitempty"`
	Wait        bool          `json:"wait"`
	Timeout     time.Duration `json:"timeout,omitempty"`
}

// RemoveRequest is the body of POST /v1/remove: take a node off the roster, dead
// or alive, this one or another.
type RemoveRequest struct {
	Node    string        `json:"node"`
	Force   bool          `json:"force,omitempty"`   // also when it costs the quorum
	NoWait  bool          `json:"no_wait,omitempty"` // not until its vote and the gossip key are gone
	Timeout time.Duration `json:"timeout,omitempty"`
}

// TransferRequest is the body of POST /v1/transfer: another node leads.
type TransferRequest struct {
	To      string        `json:"to,omitempty"`      // empty: whoever is fit
	NoWait  bool          `json:"no_wait,omitempty"` // not until this node sees who leads
	Timeout time.Duration `json:"timeout,omitempty"`
}

// The values of RotateRequest.What: the things that can be rotated.
const (
	RotateAES          = "aes"          // the key of publications; what an empty What means
	RotateGossipKey    = "gossip-key"   //
	RotateSecret       = "secret"       // cluster_secret
	RotateCertificates = "certificates" // of the nodes, on the peer port
	RotateIdentity     = "identity"     // master.pem of all nodes, in steps
)

// The steps of RotateIdentity.
const (
	IdentityReport  = ""        // say how far it is
	IdentityPrepare = "prepare" // make another key pair, beside the one in force
	IdentitySwitch  = "switch"  // put it in force
	IdentityAbort   = "abort"   // forget it again
	IdentityFinish  = "finish"  // forget the former one
)

// RotateRequest is the body of POST /v1/rotate.
type RotateRequest struct {
	What    string        `json:"what,omitempty"`
	DryRun  bool          `json:"dry_run,omitempty"` // only say what would happen
	Node    string        `json:"node,omitempty"`    // certificates: of this node only
	Secret  Secret        `json:"secret,omitempty"`  // secret: the new one
	Now     bool          `json:"now,omitempty"`     // secret: the old one is refused at once
	Finish  bool          `json:"finish,omitempty"`  // secret: the old one is refused from now on
	Step    string        `json:"step,omitempty"`    // identity: one of its steps
	Force   bool          `json:"force,omitempty"`   // identity: although not all nodes or minions are ready
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Operation is the request of a long operation.
type Operation interface {
	// WaitTime bounds the operation; 0: as long as the client waits.
	WaitTime() time.Duration
}

func (r BootstrapRequest) WaitTime() time.Duration { return r.Timeout }
func (r JoinRequest) WaitTime() time.Duration      { return r.Timeout }
func (r RemoveRequest) WaitTime() time.Duration    { return r.Timeout }
func (r TransferRequest) WaitTime() time.Duration  { return r.Timeout }
func (r RotateRequest) WaitTime() time.Duration    { return r.Timeout }
func (r DrainRequest) WaitTime() time.Duration     { return r.Timeout }
func (r UndrainRequest) WaitTime() time.Duration   { return r.Timeout }
func (r UpgradeRequest) WaitTime() time.Duration   { return r.Timeout }
func (r RecoverRequest) WaitTime() time.Duration   { return r.Timeout }

// Validate wants a peer.
func (r JoinRequest) Validate() error {
	if r.Peer == "" {
		return Errorf(CodeInvalid, "name any member: saltclusterctl join PEER", "no peer was named")
	}
	return nil
}

// Validate wants a node.
func (r RemoveRequest) Validate() error {
	if r.Node == "" {
		return Errorf(CodeInvalid, "saltclusterctl members lists them", "no node was named")
	}
	return nil
}

// Progress is one step of a long operation, told as it happens.
type Progress struct {
	Time    time.Time `json:"time"`
	Step    string    `json:"step"`              // short and stable: "prove", "identity", "learner", "catch-up", ...
	Message string    `json:"message"`           // a sentence for people
	Percent *int      `json:"percent,omitempty"` // of this step, when it can be told
}

// Outcome is how a long operation ended well.
type Outcome struct {
	Node      string   `json:"node"`
	ClusterID string   `json:"cluster_id"`
	UUID      string   `json:"uuid"`
	Role      Role     `json:"role"`
	Ready     bool     `json:"ready"`
	Message   string   `json:"message"`        // a sentence
	Next      []string `json:"next,omitempty"` // what to do or type next, in order
	PID       int      `json:"pid,omitempty"`  // process that serves after an upgrade

	Roots *RootsOutcome `json:"roots,omitempty"` // result of a sync of the roots, or of a decision about them
}

// Event is one line of an operation's stream. Exactly one field is set; the
// last line is an Outcome or an Error.
type Event struct {
	Progress *Progress `json:"progress,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
	Error    *Error    `json:"error,omitempty"`
}
