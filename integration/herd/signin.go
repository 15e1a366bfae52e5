package herd

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// payloadVersion is what minions of 3006, 3007 and 3008 send.
const payloadVersion = 3

// Identity is who signs in: an id and a key pair.
type Identity struct {
	ID  string
	Key Key
	Enc string // encryption_algorithm
	Sig string // signing_algorithm
	tok []byte // the word "salt", signed; constant
}

// NewIdentity returns one with the algorithms that minions have by default.
func NewIdentity(id string, key Key) (*Identity, error) {
	tok, err := key.SignX931([]byte("salt"))
	if err != nil {
		return nil, fmt.Errorf("sign with the minion's key: %w", err)
	}
	return &Identity{ID: id, Key: key, Enc: saltcrypt.OAEPSHA1, Sig: saltcrypt.PKCS1v15SHA1, tok: tok}, nil
}

// named returns the same key pair under another id.
func (i *Identity) named(id string) *Identity {
	other := *i
	other.ID = id
	return &other
}

// SignIn is one sign-in: what is asked, with one nonce however often it is tried, and what must come back.
type SignIn struct {
	by    *Identity
	req   saltwire.AuthRequest
	token []byte
}

// SignIn prepares one (salt/crypt.py:AsyncAuth.minion_sign_in_payload). master is the master's key when the minion has
// met it.
func (i *Identity) SignIn(master *saltcrypt.PublicKey) (*SignIn, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	s := &SignIn{by: i, req: saltwire.AuthRequest{ID: i.ID, Nonce: nonce, Pub: i.Key.PublicText(), EncAlgo: i.Enc,
		SigAlgo: i.Sig}}
	if master == nil {
		return s, nil
	}
	token, err := saltcrypt.NewKey()
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	s.token = []byte(token.Text())
	if s.req.Token, err = master.EncryptOAEP(i.Enc, s.token); err != nil {
		return nil, fmt.Errorf("encrypt the token: %w", err)
	}
	return s, nil
}

// Body is the request.
func (s *SignIn) Body() []byte {
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, s.req), Version: payloadVersion, HasVersion: true,
	})
}

// ErrReply says that a stock minion would not believe a reply.
var ErrReply = errors.New("the reply is not what a minion believes")

// Check does with the reply what a minion does with it (handle_signin_response, verify_master). The credentials are nil
// unless the outcome is saltwire.AuthAccepted. known is the master's key when it has been met; nil believes the one
// that comes.
func (s *SignIn) Check(reply []byte, known *saltcrypt.PublicKey) (saltwire.AuthOutcome, *Credentials, error) {
	r, err := saltwire.ParseAuthReply(reply)
	if err != nil {
		return saltwire.AuthError, nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if r.Sig == nil {
		return saltwire.AuthError, nil, fmt.Errorf("%w: not signed: %s", ErrReply, r.Text)
	}
	master := known
	if master == nil && r.PubKey != "" {
		if master, err = saltcrypt.ParsePublicKey(r.PubKey); err != nil {
			return saltwire.AuthError, nil, fmt.Errorf("%w: %w", ErrReply, err)
		}
	}
	if master != nil {
		if err := master.Verify(s.req.SigAlgo, r.Load, r.Sig); err != nil {
			return saltwire.AuthError, nil, fmt.Errorf("%w: %w", ErrReply, err)
		}
	}
	if r.Nonce != s.req.Nonce {
		return saltwire.AuthError, nil, fmt.Errorf("%w: nonce", ErrReply)
	}
	if r.Outcome != saltwire.AuthAccepted {
		return r.Outcome, nil, nil
	}
	c, err := s.learn(r, master)
	return r.Outcome, c, err
}

func (s *SignIn) learn(r saltwire.AuthReply, master *saltcrypt.PublicKey) (*Credentials, error) {
	if saltcrypt.CleanKey(r.PubKey) != master.Text() {
		return nil, fmt.Errorf("%w: another master's key", ErrReply)
	}
	if s.token != nil {
		if echo, err := s.by.Key.DecryptOAEP(s.req.EncAlgo, r.Token); err != nil || !bytes.Equal(echo, s.token) {
			return nil, fmt.Errorf("%w: token", ErrReply)
		}
	}
	c := &Credentials{by: s.by, Master: master, PublishPort: r.PublishPort}
	aes, err := s.by.Key.DecryptOAEP(s.req.EncAlgo, r.AES)
	if err != nil {
		return nil, fmt.Errorf("%w: aes: %w", ErrReply, err)
	}
	if c.AES, err = saltcrypt.ParseKey(string(aes)); err != nil {
		return nil, fmt.Errorf("%w: aes: %w", ErrReply, err)
	}
	sum := sha256.Sum256(aes)
	if proof, err := master.VerifyX931(r.SigX931); err != nil || string(proof) != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: sig", ErrReply)
	}
	text, err := s.by.Key.DecryptOAEP(s.req.EncAlgo, r.Session)
	if err != nil {
		return nil, fmt.Errorf("%w: session: %w", ErrReply, err)
	}
	session, err := saltcrypt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: session: %w", ErrReply, err)
	}
	c.session, c.sessionKey = saltcrypt.NewCrypticle(session), session
	return c, nil
}

func newNonce() (string, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("draw a nonce: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}
