package localmaster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// HiddenID is the pseudo minion's id: the leading dot hides it from salt-key -L and from '*' on all versions.
const HiddenID = ".saltclusterd"

// What a hidden sign-in can fail with.
var (
	// ErrHiddenPending: the master did not find the key accepted.
	ErrHiddenPending = errors.New("localmaster: the master holds the hidden key as pending")
	// ErrHiddenRejected: the master refused the hidden key.
	ErrHiddenRejected = errors.New("localmaster: the master refused the hidden key")
	// ErrHiddenFull: the master's max_minions leaves no room for the hidden key.
	ErrHiddenFull = errors.New("localmaster: the master's max_minions leaves no room for the hidden key")
	// ErrHiddenReply: the master's answer is not that of a sign-in.
	ErrHiddenReply = errors.New("localmaster: the master's answer to the hidden sign-in is unusable")
	// ErrStaleIdentity: the running master signs with another key than the one it presents, because its files have been
	// changed since it started. It must be restarted.
	ErrStaleIdentity = errors.New("localmaster: the running master uses an older key than its files contain: restart it")
)

// signInTimeout bounds one sign-in, however many wait for it.
const signInTimeout = 20 * time.Second

// Requester sends one request to the master; *upstream.ReqClient is one.
type Requester interface {
	Do(ctx context.Context, body []byte) ([]byte, error)
}

// Secrets is what the running master told its hidden minion.
type Secrets struct {
	AES         saltcrypt.Key // its current publication key
	MasterPub   string        // the master.pub it presents and signs with, clean_key'd
	PublishPort int
	At          time.Time
}

// HiddenOptions configures a Hidden.
type HiddenOptions struct {
	ID        string // HiddenID when empty; where several masters share a pki_dir each node has its own
	KeyDir    string // where the pseudo minion's private key is kept (0700)
	Requester Requester
	// Place, when not nil, makes the key known where the master has keys beside its files.
	Place  func(ctx context.Context, id, pub string) error
	Logger *slog.Logger
}

// Hidden signs in to the local master as a minion that salt-key -L and the target '*' do not show (HiddenID).
type Hidden struct {
	cfg    *Config
	o      HiddenOptions
	flight singleflight.Group
}

// NewHidden returns a Hidden for the master of cfg.
func NewHidden(cfg *Config, o HiddenOptions) *Hidden {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.ID = cmp.Or(o.ID, HiddenID)
	return &Hidden{cfg: cfg, o: o}
}

// SignIn makes sure that the pseudo minion's key is accepted and signs in. Concurrent calls share one sign-in.
func (h *Hidden) SignIn(ctx context.Context) (Secrets, error) {
	done := h.flight.DoChan("", func() (any, error) {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), signInTimeout)
		defer cancel()
		return h.signIn(own)
	})
	select {
	case <-ctx.Done():
		return Secrets{}, context.Cause(ctx)
	case r := <-done:
		if r.Err != nil {
			return Secrets{}, r.Err
		}
		return r.Val.(Secrets), nil
	}
}

func (h *Hidden) signIn(ctx context.Context) (Secrets, error) {
	key, err := h.loadKey()
	if err != nil {
		return Secrets{}, err
	}
	if err := h.acceptKey(key); err != nil {
		return Secrets{}, err
	}
	if h.o.Place != nil {
		if err := h.o.Place(ctx, h.o.ID, key.PublicText()); err != nil {
			return Secrets{}, err
		}
	}
	// A master in FIPS mode refuses the default algorithms.
	for _, algo := range [][2]string{{"OAEP-SHA1", "PKCS1v15-SHA1"}, {"OAEP-SHA224", "PKCS1v15-SHA224"}} {
		var s Secrets
		if s, err = h.askMaster(ctx, key, algo[0], algo[1]); !errors.Is(err, errBadAlgo) {
			return s, err
		}
	}
	return Secrets{}, err
}

var errBadAlgo = fmt.Errorf("%w: it refuses the algorithm", ErrHiddenReply)

func (h *Hidden) askMaster(ctx context.Context, key *saltcrypt.MasterKey, enc, sig string) (Secrets, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return Secrets{}, err
	}
	req := saltwire.AuthRequest{
		ID: h.o.ID, Nonce: hex.EncodeToString(raw[:]), Pub: key.PublicText(), EncAlgo: enc, SigAlgo: sig,
	}
	body := saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, req), Version: 3, HasVersion: true,
	})
	text, err := h.o.Requester.Do(ctx, body)
	if err != nil {
		return Secrets{}, err
	}
	reply, err := saltwire.ParseAuthReply(text)
	if err != nil {
		return Secrets{}, fmt.Errorf("%w: %w", ErrHiddenReply, err)
	}
	if err := checkOutcome(reply, req); err != nil {
		return Secrets{}, err
	}
	return openReply(reply, req, key)
}

func checkOutcome(reply saltwire.AuthReply, req saltwire.AuthRequest) error {
	switch reply.Outcome {
	case saltwire.AuthPending:
		return ErrHiddenPending
	case saltwire.AuthRejected:
		return ErrHiddenRejected
	case saltwire.AuthFull:
		return ErrHiddenFull
	case saltwire.AuthAccepted:
		if reply.Nonce != req.Nonce {
			return fmt.Errorf("%w: another nonce", ErrHiddenReply)
		}
		return nil
	}
	if reply.Text == "bad enc algo" || reply.Text == "bad sig algo" {
		return errBadAlgo
	}
	return fmt.Errorf("%w: %q", ErrHiddenReply, reply.Text)
}

// openReply opens an accepting reply. Both of its signatures are checked against the key the master presents: 3006 and
// 3007 read master.pub and the signing key from disk again, but the key in their memory shows in the X9.31 one.
func openReply(reply saltwire.AuthReply, req saltwire.AuthRequest, key *saltcrypt.MasterKey) (Secrets, error) {
	pub, err := saltcrypt.ParsePublicKey(reply.PubKey)
	if err != nil {
		return Secrets{}, fmt.Errorf("%w: %w", ErrHiddenReply, err)
	}
	text, err := key.DecryptOAEP(req.EncAlgo, reply.AES)
	if err != nil {
		return Secrets{}, fmt.Errorf("%w: the key does not decrypt", ErrHiddenReply)
	}
	aes, err := saltcrypt.ParseKey(string(text))
	if err != nil {
		return Secrets{}, fmt.Errorf("%w: %w", ErrHiddenReply, err)
	}
	if err := pub.Verify(req.SigAlgo, reply.Load, reply.Sig); err != nil {
		return Secrets{}, ErrStaleIdentity
	}
	sum := sha256.Sum256(text)
	if proof, err := pub.VerifyX931(reply.SigX931); err != nil || string(proof) != hex.EncodeToString(sum[:]) {
		return Secrets{}, ErrStaleIdentity
	}
	return Secrets{
		AES: aes, MasterPub: saltcrypt.CleanKey(reply.PubKey), PublishPort: reply.PublishPort, At: time.Now(),
	}, nil
}
