package sidecar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// ErrForeignIdentity says that the local master presents another key than the cluster's: it has not been restarted
// since the cluster's master.pem was installed.
var ErrForeignIdentity = errors.New("the local salt-master presents another master.pub than the cluster's: restart it")

// SignIn learns the local master's AES key and the public key it presents (localmaster.Hidden).
type SignIn interface {
	SignIn(ctx context.Context) (localmaster.Secrets, error)
}

// IntakeConfig is what an Intake needs.
type IntakeConfig struct {
	SignIn     SignIn
	ClusterPub string // clean text of the cluster's public key
	Deliver    func(fanout.Publication) error
	Logger     *slog.Logger
}

// Intake opens the local master's publications and hands them to the fan-out.
type Intake struct {
	cfg IntakeConfig

	mu        sync.Mutex
	key       saltcrypt.Key
	crypticle *saltcrypt.Crypticle // of key; nil: not known
	learnt    time.Time            // when the key in use was learnt
	tried     time.Time
	err       error     // of the last sign-in
	failing   time.Time // when the first failed of those that failed since one did not

	recent [recentBodies]recentBody // topic copies of one publication follow each other
	next   int
}

const (
	// recentBodies is how many publications are remembered to tell further copies (one per topic) from new ones.
	recentBodies = 16
	// maxRecent bounds the bytes of those before the newest: a publication may take many megabytes, and its copies follow
	// it at once.
	maxRecent = 1 << 20
	// signInTimeout bounds one sign-in at the local master. A master that starts takes the request at once and answers
	// when its workers are there; giving up earlier would only ask again behind the first.
	signInTimeout = 20 * time.Second
	// signInEvery bounds how often a key that does not fit is asked for again.
	signInEvery = 200 * time.Millisecond
)

type recentBody struct {
	sum   [sha256.Size]byte
	plain []byte
}

// NewIntake returns an intake that has no key yet.
func NewIntake(cfg IntakeConfig) *Intake { return &Intake{cfg: cfg} }

// Learn signs in at the local master and keeps its key. It returns ErrForeignIdentity when the master runs with
// another identity than the cluster's.
func (i *Intake) Learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	secrets, err := i.cfg.SignIn.SignIn(ctx)
	if err == nil && saltcrypt.CleanKey(secrets.MasterPub) != i.cfg.ClusterPub {
		err = ErrForeignIdentity
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tried, i.err = time.Now(), err
	if err != nil {
		if i.failing.IsZero() {
			i.failing = i.tried
		}
		return fmt.Errorf("sign in at the local master: %w", err)
	}
	i.failing = time.Time{}
	i.key, i.crypticle, i.learnt = secrets.AES, saltcrypt.NewCrypticle(secrets.AES), i.tried
	return nil
}

// State tells whether the master's key is known, and why the last sign-in failed if it did.
func (i *Intake) State() (signedIn bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.crypticle != nil && i.err == nil, i.err
}

// FailingSince tells when the first failed of the sign-ins since the last that did not; zero: none has.
func (i *Intake) FailingSince() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failing
}

// MasterAES returns the local master's AES key, nil while it is not known.
func (i *Intake) MasterAES() *saltcrypt.Crypticle {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.crypticle
}

// Message takes one message of the local master's 4505: [body], or [topic, body] when the master filters. Messages
// come in order, from one goroutine.
func (i *Intake) Message(ctx context.Context, parts [][]byte) {
	if len(parts) != 1 && len(parts) != 2 {
		i.cfg.Logger.Warn("publication of the local master refused", "reason", "parts", "count", len(parts))
		return
	}
	body := parts[len(parts)-1]
	sum := sha256.Sum256(body)
	plain, seen := i.findSeen(sum)
	if !seen {
		var err error
		if plain, err = i.openBody(ctx, body); err != nil {
			i.cfg.Logger.Error("publication of the local master lost", "err", err)
			return
		}
		if len(parts) == 2 {
			i.rememberBody(sum, plain)
		}
	}
	p := fanout.Publication{Plain: plain, TopicOnly: seen}
	if len(parts) == 2 {
		p.Topics = []string{string(parts[0])}
	}
	if err := i.cfg.Deliver(p); err != nil {
		i.cfg.Logger.Error("publication of the local master not delivered", "err", err)
	}
}

func (i *Intake) findSeen(sum [sha256.Size]byte) ([]byte, bool) {
	for _, r := range i.recent {
		if r.sum == sum && r.plain != nil {
			return r.plain, true
		}
	}
	return nil, false
}

// rememberBody keeps the newest and, beside it, as many of those before as are not large.
func (i *Intake) rememberBody(sum [sha256.Size]byte, plain []byte) {
	i.recent[i.next] = recentBody{sum, plain}
	size := 0
	for n := range recentBodies - 1 {
		older := &i.recent[(i.next+recentBodies-1-n)%recentBodies]
		if size += len(older.plain); size > maxRecent {
			*older = recentBody{}
		}
	}
	i.next = (i.next + 1) % recentBodies
}

// openBody decrypts a publication, signing in anew when the master has changed its key.
func (i *Intake) openBody(ctx context.Context, body []byte) ([]byte, error) {
	env, err := saltwire.ParsePub(body)
	if err != nil {
		return nil, err
	}
	plain, err := i.decryptLoad(env.Load)
	for tries := 0; err != nil && tries < 3 && ctx.Err() == nil; tries++ {
		if err = i.learnAgain(ctx); err == nil {
			plain, err = i.decryptLoad(env.Load)
		}
	}
	return plain, err
}

var errNoKey = errors.New("the local master's key is not known")

func (i *Intake) decryptLoad(load []byte) ([]byte, error) {
	i.mu.Lock()
	c := i.crypticle
	i.mu.Unlock()
	if c == nil {
		return nil, errNoKey
	}
	return c.Open(nil, load)
}

// learnAgain is Learn, not more often than signInEvery.
func (i *Intake) learnAgain(ctx context.Context) error {
	i.mu.Lock()
	wait := time.Until(i.tried.Add(signInEvery))
	i.mu.Unlock()
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
	return i.Learn(ctx)
}

// maxHandedBodies bounds what of the remembered bodies goes along to another process.
const maxHandedBodies = 1 << 20

// Export writes down what another process needs to continue with the next message; none may be under way.
func (i *Intake) Export() []byte {
	e := &handover.Encoder{}
	i.mu.Lock()
	aes := ""
	if i.crypticle != nil && i.err == nil {
		aes = i.key.Text()
	}
	i.mu.Unlock()
	e.String(aes)
	for n, r := range i.recent {
		e.Bool(r.plain != nil && len(r.plain) <= maxHandedBodies/recentBodies)
		if r.plain != nil && len(r.plain) <= maxHandedBodies/recentBodies {
			e.Bytes(i.recent[n].sum[:])
			e.Bytes(r.plain)
		}
	}
	e.Int(i.next)
	return e.Record()
}

// Import is Export backwards; to be called before the first message.
func (i *Intake) Import(record []byte) error {
	d := handover.NewDecoder(record)
	aes := d.String()
	for n := range i.recent {
		if d.Bool() {
			copy(i.recent[n].sum[:], d.Bytes())
			i.recent[n].plain = append([]byte{}, d.Bytes()...)
		}
	}
	i.next = d.Int(recentBodies - 1)
	if err := d.End(); err != nil {
		return fmt.Errorf("publications of the master: %w", err)
	}
	if aes == "" {
		return nil
	}
	key, err := saltcrypt.ParseKey(aes)
	if err != nil {
		return fmt.Errorf("publications of the master: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.crypticle, i.learnt = key, saltcrypt.NewCrypticle(key), time.Now()
	return nil
}
