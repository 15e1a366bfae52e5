package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// A change of the cluster's identity stands in consensus (state.IdentityChange), and each node does by itself what follows from it, in
// steps that can all be repeated: nobody leads it, so nobody's end leaves it half done. As long as it is under way every node has both
// keys and answers a minion's sign-in under the one that the minion has pinned. After the switch the nodes take the new one one after
// the other, in the order of their names: files first, then another process of this very program that has them from its
// start, then the salt-master.

const (
	// identityLook is how often a node looks what is to be done.
	identityLook = time.Second
	// identityLabel binds a sealed private key to what it is.
	identityLabel = "saltclusterd identity"
	// restartAgain is the pause before the salt-master is restarted once more because it still has its old key.
	restartAgain = 2 * time.Minute
)

// identity is what a node knows of a change of the identity.
type identity struct {
	mu      sync.Mutex
	other   string         // fingerprint of the second identity that sign-ins are answered under
	options *masterOptions // by which they are; nil without a second identity
	shown   atomic.Bool    // the local master has shown the new one
	restart time.Time      // when it was restarted for it; the keeper's
	failed  string         // the last reason; the keeper's
	handed  bool           // another process goes on; the keeper's
	pins    pins
}

// identityDuty is what a node has to do.
type identityDuty int

const (
	identityRest   identityDuty = iota
	identityForget              // nothing is under way: the other key goes
	identityServe               // answer under the other key, too
	identityTake                // put the new one in force here, when it is this node's turn
	identityFollow              // have the local master follow
	identityLost                // this node missed a change and cannot make up for it
)

// dueIdentity decides; own is the fingerprint of the key in force on this node.
func dueIdentity(own, inForce string, c state.IdentityChange) identityDuty {
	switch {
	case own == "" || inForce == "":
		return identityRest
	case c.Stage == state.NoIdentity && own == inForce:
		return identityForget
	case c.Stage == state.IdentityStaged && own == c.Former:
		return identityServe
	case c.Stage == state.IdentitySwitched && own == c.Former:
		return identityTake
	case c.Stage == state.IdentitySwitched && own == c.FP:
		return identityFollow
	}
	return identityLost
}

// pinsFile keeps what minions have pinned while another process takes over.
func (m *member) pinsFile() string { return filepath.Join(m.d.cfg.Paths.StateDir, "pins.json") }

// keepIdentity does what is due.
func (m *member) keepIdentity(ctx context.Context) {
	for backoff.Sleep(ctx, identityLook) {
		err := m.identityStep(ctx)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if m.ident.handed {
			return
		}
		if text != m.ident.failed && text != "" {
			m.log.Warn("change of the identity", "node", m.d.id, "err", err)
		}
		m.ident.failed = text
	}
}

func (m *member) identityStep(ctx context.Context) error {
	v := m.cons.View()
	c := v.IdentityChange()
	own := m.fingerprint
	if err := m.answerBoth(v); err != nil {
		return err
	}
	switch dueIdentity(own, v.Identity().IdentityFP, c) {
	case identityForget:
		return forgetFile(m.pinsFile())
	case identityTake:
		if who := m.identityWaitsFor(ctx, c); who != "" || !m.cons.CaughtUp() {
			return nil
		}
		return m.takeIdentity(ctx, c)
	case identityFollow:
		if m.svc == nil {
			return nil
		}
		return m.masterFollows(ctx)
	case identityLost:
		return errors.New("this node has missed that the cluster's identity was changed: remove it, and let it join again")
	}
	return nil
}

// openIdentity returns the private key of the other identity.
func (m *member) openIdentity(sealed []byte, fp string) ([]byte, error) {
	private, err := m.key.DecodeSealed(identityLabel, sealed)
	if err != nil {
		return nil, fmt.Errorf("the other identity: %w", err)
	}
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return nil, fmt.Errorf("the other identity: %w", err)
	}
	if saltcrypt.Fingerprint(key.PublicText()) != fp {
		return nil, errors.New("the other identity is not the one that was agreed on")
	}
	return private, nil
}

// answerBoth has sign-ins answered under both identities while there are two. It is done before a node serves: who has pinned the other
// one would give up at the first answer under this one.
func (m *member) answerBoth(v state.View) error {
	if m.svc == nil {
		return nil
	}
	m.ident.mu.Lock()
	defer m.ident.mu.Unlock()
	c := v.IdentityChange()
	if m.ident.pins.about(c.FP) {
		m.recallPins()
	}
	fp, sealed := "", []byte(nil)
	switch dueIdentity(m.fingerprint, v.Identity().IdentityFP, c) {
	case identityServe, identityTake:
		fp, sealed = c.FP, c.Sealed
	case identityFollow:
		fp, sealed = c.Former, c.SealedFormer
	}
	options := m.svc.followed.Load()
	if fp == "" {
		options = nil
	}
	if m.ident.other == fp && m.ident.options == options {
		return nil
	}
	var another *signin.Another
	if fp != "" {
		var err error
		if another, err = m.secondIdentity(fp, sealed, options); err != nil {
			return err
		}
		if m.ident.other != fp {
			m.log.Info("sign-ins are answered under two identities, by what minions have pinned", "node", m.d.id, "fingerprint", fp)
		}
	}
	m.svc.signin.Answer(another)
	m.ident.other, m.ident.options = fp, options
	return nil
}

// secondIdentity is the other identity, by the options of a master.
func (m *member) secondIdentity(fp string, sealed []byte, options *masterOptions) (*signin.Another, error) {
	text, err := m.openIdentity(sealed, fp)
	if err != nil {
		return nil, err
	}
	key, err := saltcrypt.ParseMasterKey(text)
	if err != nil {
		return nil, fmt.Errorf("the other identity: %w", err)
	}
	pubSigner, err := readPubSigner(m.d, options.From, key.PublicText())
	if err != nil {
		return nil, err
	}
	return &signin.Another{Identity: key, PubSigner: pubSigner}, nil
}

// identityWaitsFor says for whom this node waits before it takes the new identity: the others come before it that are there, by their
// names, until their masters show it. Witnesses wait for nobody and nobody for them.
func (m *member) identityWaitsFor(ctx context.Context, c state.IdentityChange) node.ID {
	if m.svc == nil {
		return ""
	}
	for _, mem := range m.cons.View().Members() {
		switch {
		case mem.ID >= m.d.id:
			return ""
		case mem.Witness || !m.alive(mem.ID):
			continue
		}
		s, err := m.statsSoon(ctx, mem.ID)
		if err != nil || s.Identity != c.FP || !s.IdentityShown {
			return mem.ID
		}
	}
	return ""
}

func (m *member) statsSoon(ctx context.Context, id node.ID) (nodeStats, error) {
	if id == m.d.id {
		return m.localStats(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return m.nodeStats(ctx, id)
}

// takeIdentity puts the new identity in force on this node: whatever interrupts it, the next process goes on.
func (m *member) takeIdentity(ctx context.Context, c state.IdentityChange) error {
	m.log.Info("the new identity is taken", "node", m.d.id, "fingerprint", c.FP)
	if m.svc == nil {
		if err := membership.WritePublicIdentity(m.d.cfg.Cluster.PKIDir, []byte(c.Public)); err != nil {
			return err
		}
	} else {
		private, err := m.openIdentity(c.Sealed, c.FP)
		if err != nil {
			return err
		}
		m.savePins()
		if err := membership.WriteIdentity(m.d.cfg.Cluster.PKIDir, private, []byte(c.Public)); err != nil {
			return err
		}
	}
	_, err := m.d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(step, message string, _ ...int) {
		m.log.Debug("renewed for the new identity", "op", step, "reason", message)
	})
	if err != nil {
		backoff.Sleep(ctx, renewAgain)
		return fmt.Errorf("not renewed for the new identity: %w", err)
	}
	m.ident.handed = true
	return nil
}

// masterFollows gives the local master the new identity and has it restarted until it shows it.
func (m *member) masterFollows(ctx context.Context) error {
	if m.ident.shown.Load() {
		return nil
	}
	_, private, public, err := membership.ReadIdentity(m.d.cfg.Cluster.PKIDir)
	if err != nil {
		return err
	}
	if _, _, err := localmaster.InstallIdentity(m.d.master, private, public); err != nil {
		return fmt.Errorf("install the new identity: %w", err)
	}
	if _, err := m.d.storeIdentity(private); err != nil {
		return err
	}
	switch err := m.svc.intake.Learn(ctx); {
	case err == nil:
		m.ident.shown.Store(true)
		m.log.Info("the salt-master shows the new identity", "node", m.d.id)
		return nil
	case !errors.Is(err, sidecar.ErrForeignIdentity) && !errors.Is(err, localmaster.ErrStaleIdentity):
		return nil // it is away, or starts: its own checks say so
	case time.Since(m.ident.restart) < restartAgain:
		return nil
	}
	m.ident.restart = time.Now()
	return m.d.restartMaster(ctx, func(_, message string, _ ...int) { m.log.Info(message, "node", m.d.id) })
}

// forgetFile removes what may not be there.
func forgetFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	return nil
}

// identityProblems says how far a change of the identity is.
func (m *member) identityProblems() []adminapi.Problem {
	v := m.cons.View()
	c := v.IdentityChange()
	own := m.fingerprint
	const hint = "saltclusterctl rotate identity says who has it and what is next"
	warn := func(format string, args ...any) []adminapi.Problem {
		return []adminapi.Problem{{Level: adminapi.LevelWarn, Message: fmt.Sprintf(format, args...), Hint: hint}}
	}
	switch due := dueIdentity(own, v.Identity().IdentityFP, c); {
	case due == identityLost:
		return []adminapi.Problem{{
			Level: adminapi.LevelFail, Node: string(m.d.id), Message: "it has missed that the cluster's identity was changed",
			Hint: "saltclusterctl remove " + string(m.d.id) + " on another node, then join again here",
		}}
	case c.Stage == state.IdentityStaged:
		return warn("a new identity is staged: minions are to be told")
	case due == identityTake:
		return warn("the cluster has a new identity; %s has not taken it yet", m.d.id)
	case c.Stage == state.IdentitySwitched:
		return warn("the cluster has a new identity; the former one is still answered for")
	}
	return nil
}
