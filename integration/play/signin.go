package play

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// SignIn signs in at addr, in the 5 s a stock minion waits. An error is ErrNotAccepted when the answer is one that can
// be believed, and says no or not yet.
func (m *Minion) SignIn(ctx context.Context, addr string) (*Secrets, error) {
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	req := saltwire.AuthRequest{
		ID: m.ID, Nonce: nonce, Pub: m.key.PublicText(), EncAlgo: saltcrypt.OAEPSHA1, SigAlgo: saltcrypt.PKCS1v15SHA1,
	}
	if req.Token, err = m.processToken(); err != nil {
		return nil, fmt.Errorf("%s: %w", m.ID, err)
	}
	body, err := m.exchange(ctx, addr, saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, req), Version: 3, HasVersion: true,
	}))
	if err != nil {
		return nil, fmt.Errorf("%s: sign in at %s: %w", m.ID, addr, err)
	}
	s, err := m.believe(body, nonce)
	if err != nil {
		return nil, fmt.Errorf("%s: sign in at %s: %w", m.ID, addr, err)
	}
	m.mu.Lock()
	m.got = s
	m.mu.Unlock()
	return s, nil
}

// processToken is the minion's token for the master it has met before, as that one opens it; nil before it has met one
// (salt/crypt.py:AsyncAuth.minion_sign_in_payload).
func (m *Minion) processToken() ([]byte, error) {
	m.mu.Lock()
	pin := m.pin
	m.mu.Unlock()
	if pin == nil {
		return nil, nil
	}
	return pin.EncryptOAEP(saltcrypt.OAEPSHA1, m.process)
}

// believe checks a reply as stock minions do (salt/crypt.py:AsyncAuth.handle_signin_response, verify_master).
func (m *Minion) believe(body []byte, nonce string) (*Secrets, error) {
	r, err := saltwire.ParseAuthReply(body)
	if err != nil {
		return nil, err
	}
	if r.Outcome != saltwire.AuthAccepted {
		return nil, fmt.Errorf("%w: %s %s", ErrNotAccepted, r.Outcome, r.Text)
	}
	master, err := m.master(r.PubKey)
	if err != nil {
		return nil, err
	}
	if err := master.Verify(saltcrypt.PKCS1v15SHA1, r.Load, r.Sig); err != nil {
		return nil, fmt.Errorf("%w: signature: %w", ErrReply, err)
	}
	if r.Nonce != nonce {
		return nil, fmt.Errorf("%w: another nonce", ErrReply)
	}
	aes, err := m.open(r.AES)
	if err != nil {
		return nil, err
	}
	session, err := m.open(r.Session)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(aes.Text()))
	if proof, err := master.VerifyX931(r.SigX931); err != nil || string(proof) != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: the AES key does not match the master's signature", ErrReply)
	}
	return &Secrets{AES: aes, aes: saltcrypt.NewCrypticle(aes), session: saltcrypt.NewCrypticle(session)}, nil
}

// master is the one met first; another one is not believed.
func (m *Minion) master(text string) (*saltcrypt.PublicKey, error) {
	pub, err := saltcrypt.ParsePublicKey(text)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pin == nil {
		m.pin = pub
	}
	return m.pin, nil
}

func (m *Minion) open(sealed []byte) (k saltcrypt.Key, err error) {
	text, err := m.key.DecryptOAEP(saltcrypt.OAEPSHA1, sealed)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrReply, err)
	}
	return saltcrypt.ParseKey(string(text))
}
