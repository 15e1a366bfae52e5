package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

const (
	// stepInterval is the pause between two steps of a node.
	stepInterval = time.Second
	// sealLabel binds a sealed private key to its purpose.
	sealLabel = "saltclusterd identity"
	// restartAgain is the pause before the salt-master is restarted once more because it still has its old key.
	restartAgain = 2 * time.Minute
	// takeoverAgain is the pause after another process did not take over.
	takeoverAgain = 10 * time.Second
	// decidedWithin is how long the cluster has to decide; without a majority it never does.
	decidedWithin = 10 * time.Second
)

// Log is the log that the members agree on (consensus.Node).
type Log interface {
	View() state.View
	CaughtUp() bool
	Barrier(ctx context.Context) error
}

// Master is the local salt-master, and the sign-ins that are answered beside it.
type Master struct {
	// Options returns its configuration. The pointer changes when the options do.
	Options func() *localmaster.Config
	// PubSigner returns what signs a public key for minions, or nil when the options do not ask for signatures.
	PubSigner func(options *localmaster.Config, public string) (signin.PubSigner, error)
	// Answer sets the second identity that sign-ins are answered under; nil: none.
	Answer func(another *signin.Another)
	// SignIn signs in at it. It returns sidecar.ErrForeignIdentity or localmaster.ErrStaleIdentity when the master
	// uses another key.
	SignIn func(ctx context.Context) error
	// Restart runs the operator's command that restarts it, if there is one.
	Restart func(ctx context.Context, p admin.Progress) error
}

// Status is what a node reports about its identity.
type Status struct {
	Fingerprint string // of the key in force on the node
	Shown       bool   // the node's salt-master serves with it
}

// Config configures Change.
type Config struct {
	Self        node.ID
	Log         Log
	Key         *saltcrypt.MasterKey // in force on this node; nil on a witness
	Fingerprint string               // of its public half
	MasterKeys  MasterKeys
	PinsFile    string // holds the pins of minions while another process takes over

	PKIDir string // where the cluster's key pair is kept

	Alive func(node.ID) bool // by gossip
	// Decide proposes a command for an operator. NoQuorum turns a failure to decide into an error for an operator.
	Decide   func(context.Context, state.Command) (state.Result, error)
	NoQuorum func(error) error
	// Knows returns an error for an operator unless all members understand the commands of a level.
	Knows func(level uint16) error
	// ReplaceAES makes the cluster agree on another AES key.
	ReplaceAES func(context.Context) error
	// Takeover starts another process of this program, which reads the key pair and takes over.
	Takeover func(context.Context, admin.Progress) error
	// Status asks a node for its status; this one as well. It has a timeout of its own.
	Status func(context.Context, node.ID) (Status, error)
	// Accelerate gives a key to the backend that does RSA; nil: Go does it.
	Accelerate func(*saltcrypt.MasterKey) signin.SecondIdentity
	Client     peerrpc.Client
	Logger     *slog.Logger
}

// Change carries out a change of the cluster's identity on this node.
type Change struct {
	cfg    Config
	master *Master // nil on a witness
	pins   pins

	mu      sync.Mutex
	second  *signin.Another     // the second identity that sign-ins are answered under; nil: there is one identity
	other   string              // fingerprint of the second identity
	options *localmaster.Config // of the master, used by the second identity; nil without one

	shown atomic.Bool // the local master has shown the new identity

	// Used by Run only.
	restarted time.Time // when the local master was restarted for the change
	failed    string    // the last error
	handed    bool      // another process has taken over
}

// New returns a Change. Nothing runs before Run.
func New(cfg Config) *Change { return &Change{cfg: cfg} }

// SetMaster sets the local master. It must be called before Run.
func (c *Change) SetMaster(m Master) { c.master = &m }

// Shown tells whether the local master has shown the new identity since this process started.
func (c *Change) Shown() bool { return c.shown.Load() }

// Second returns the second identity that sign-ins are answered under and the options of the master that it follows.
// Both are nil while there is one identity.
func (c *Change) Second() (*signin.Another, *localmaster.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.second, c.options
}

// duty is the next step of a node.
type duty int

const (
	dutyNone   duty = iota
	dutyForget      // no change is under way: forget the other key
	dutyAnswer      // answer under both keys
	dutyTake        // put the new key in force on this node, when it is its turn
	dutyFollow      // give the new key to the local master
	dutyMissed      // this node missed a change and has to join again
)

// decideDuty returns the next step; own is the fingerprint of the key in force on this node.
func decideDuty(own, inForce string, agreed state.IdentityChange) duty {
	switch {
	case own == "" || inForce == "":
		return dutyNone
	case agreed.Stage == state.NoIdentity && own == inForce:
		return dutyForget
	case agreed.Stage == state.IdentityStaged && own == agreed.Former:
		return dutyAnswer
	case agreed.Stage == state.IdentitySwitched && own == agreed.Former:
		return dutyTake
	case agreed.Stage == state.IdentitySwitched && own == agreed.FP:
		return dutyFollow
	}
	return dutyMissed
}

// dutyOf returns the next step of this node.
func (c *Change) dutyOf(v state.View) duty {
	return decideDuty(c.cfg.Fingerprint, v.Identity().IdentityFP, v.IdentityChange())
}

// Run takes the steps of this node until ctx ends or another process has taken over.
func (c *Change) Run(ctx context.Context) {
	for backoff.Poll(ctx, stepInterval) {
		err := c.step(ctx)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if c.handed {
			return
		}
		if text != c.failed && text != "" {
			c.cfg.Logger.Warn("change of the identity", "node", c.cfg.Self, "err", err)
		}
		c.failed = text
	}
}

// step takes the next step, if one is due.
func (c *Change) step(ctx context.Context) error {
	v := c.cfg.Log.View()
	agreed := v.IdentityChange()
	if err := c.AnswerBoth(v); err != nil {
		return err
	}
	switch c.dutyOf(v) {
	case dutyForget:
		return removeFile(c.cfg.PinsFile)
	case dutyTake:
		if before := c.waitsFor(ctx, agreed); before != "" || !c.cfg.Log.CaughtUp() {
			return nil
		}
		return c.take(ctx, agreed)
	case dutyFollow:
		if c.master == nil {
			return nil
		}
		return c.updateMaster(ctx)
	case dutyMissed:
		return errors.New("this node has missed a change of the cluster's identity: remove it, and let it join again")
	}
	return nil
}

// openSealed decrypts the private key of the other identity and compares it with the agreed fingerprint.
func (c *Change) openSealed(sealed []byte, fp string) (*saltcrypt.MasterKey, []byte, error) {
	private, err := c.cfg.Key.DecodeSealed(sealLabel, sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("the other identity: %w", err)
	}
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("the other identity: %w", err)
	}
	if saltcrypt.Fingerprint(key.PublicText()) != fp {
		return nil, nil, errors.New("the new identity is not the one that was agreed on")
	}
	return key, private, nil
}

// AnswerBoth makes sign-ins be answered under both identities while there are two. It must be called before a node
// serves: a minion that has pinned the other one would give up at the first answer under this one.
func (c *Change) AnswerBoth(v state.View) error {
	if c.master == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	agreed := v.IdentityChange()
	if c.pins.setChange(agreed.FP) {
		c.loadPins()
	}
	fp, sealed := "", []byte(nil)
	switch c.dutyOf(v) {
	case dutyAnswer, dutyTake:
		fp, sealed = agreed.FP, agreed.Sealed
	case dutyFollow:
		fp, sealed = agreed.Former, agreed.SealedFormer
	}
	options := c.master.Options()
	if fp == "" {
		options = nil
	}
	if c.other == fp && c.options == options {
		return nil
	}
	var second *signin.Another
	if fp != "" {
		var err error
		if second, err = c.openSecond(fp, sealed, options); err != nil {
			return err
		}
		if c.other != fp {
			c.cfg.Logger.Info("sign-ins are answered under two identities, depending on the key that the minion has stored",
				"node", c.cfg.Self, "fingerprint", fp)
		}
	}
	c.master.Answer(second)
	c.second, c.other, c.options = second, fp, options
	return nil
}

// openSecond returns the other identity for sign-ins, by the options of the master.
func (c *Change) openSecond(fp string, sealed []byte, options *localmaster.Config) (*signin.Another, error) {
	key, _, err := c.openSealed(sealed, fp)
	if err != nil {
		return nil, err
	}
	pubSigner, err := c.master.PubSigner(options, key.PublicText())
	if err != nil {
		return nil, err
	}
	another := &signin.Another{Identity: key, PubSigner: pubSigner}
	if c.cfg.Accelerate != nil {
		another.Identity = c.cfg.Accelerate(key)
	}
	return another, nil
}

// Problems returns what the status shows of a change.
func (c *Change) Problems() []adminapi.Problem {
	v := c.cfg.Log.View()
	agreed := v.IdentityChange()
	const hint = "saltclusterctl rotate identity shows who has it, and the next step"
	warn := func(format string, args ...any) []adminapi.Problem {
		return []adminapi.Problem{{Level: adminapi.LevelWarn, Message: fmt.Sprintf(format, args...), Hint: hint}}
	}
	switch due := c.dutyOf(v); {
	case due == dutyMissed:
		return []adminapi.Problem{{
			Level: adminapi.LevelFail, Node: string(c.cfg.Self),
			Message: "it has missed a change of the cluster's identity",
			Hint:    "saltclusterctl remove " + string(c.cfg.Self) + " on another node, then join again here",
		}}
	case agreed.Stage == state.IdentityStaged:
		return warn("a new identity is staged: give minions its public key")
	case due == dutyTake:
		return warn("the cluster has a new identity; %s has not taken it yet", c.cfg.Self)
	case agreed.Stage == state.IdentitySwitched:
		return warn("the cluster has a new identity; the former one is still answered for")
	}
	return nil
}
