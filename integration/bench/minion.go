package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// minion is one that is played: a real key pair and what a stock minion does with it on the wire.
type minion struct {
	id  string
	key *saltcrypt.MasterKey
	tok []byte // the word "salt", signed; constant
}

func newMinions(n int) ([]*minion, error) {
	all := make([]*minion, n)
	var g errgroup.Group
	g.SetLimit(2)
	for i := range all {
		g.Go(func() error {
			key, err := saltcrypt.GenerateMasterKey(2048)
			if err != nil {
				return err
			}
			tok, err := key.SignX931([]byte("salt"))
			all[i] = &minion{id: fmt.Sprintf("bench%d", i), key: key, tok: tok}
			return err
		})
	}
	return all, g.Wait()
}

// accept puts the keys of minions into a master's directory of accepted keys, as salt-key does, and fleet more. The master must
// not run yet.
func accept(m *lab.Master, minions []*minion, fleet int) error {
	dir := filepath.Join(m.PKIDir(), "minions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("accept keys: %w", err)
	}
	for i := range len(minions) + fleet {
		mn := minions[i%len(minions)]
		id := mn.id
		if i >= len(minions) {
			id = fmt.Sprintf("idle%d", i)
		}
		if err := os.WriteFile(filepath.Join(dir, id), []byte(mn.key.PublicText()), 0o644); err != nil {
			return fmt.Errorf("accept keys: %w", err)
		}
	}
	return nil
}

// signIn is one sign-in on its way: what was asked and how it was answered.
type signIn struct {
	m     *minion
	req   saltwire.AuthRequest
	token []byte
	reply []byte
}

// newSignIn prepares one as a minion that knows its master sends it (salt/crypt.py:AsyncAuth.minion_sign_in_payload); master is
// nil at the very first.
func (m *minion) newSignIn(master *saltcrypt.PublicKey) (*signIn, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	s := &signIn{m: m, req: saltwire.AuthRequest{
		ID: m.id, Nonce: nonce, Pub: m.key.PublicText(), EncAlgo: saltcrypt.OAEPSHA1, SigAlgo: saltcrypt.PKCS1v15SHA1,
	}}
	if master == nil {
		return s, nil
	}
	k, err := saltcrypt.NewKey()
	if err != nil {
		return nil, err
	}
	s.token = []byte(k.Text())
	s.req.Token, err = master.EncryptOAEP(s.req.EncAlgo, s.token)
	return s, err
}

func (s *signIn) body() []byte {
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, s.req), Version: 3, HasVersion: true,
	})
}

// credentials are what a minion has after it signed in.
type credentials struct {
	m       *minion
	master  *saltcrypt.PublicKey
	aes     saltcrypt.Key
	session *saltcrypt.Crypticle
}

var errReply = errors.New("the reply to a sign-in is wrong")

// check does with the reply all that a minion does with it, and a little more.
func (s *signIn) check() (*credentials, error) {
	r, err := saltwire.ParseAuthReply(s.reply)
	if err != nil {
		return nil, err
	}
	if r.Outcome != saltwire.AuthAccepted {
		return nil, fmt.Errorf("%w: outcome %d %s", errReply, r.Outcome, r.Text)
	}
	pub, err := saltcrypt.ParsePublicKey(r.PubKey)
	if err != nil {
		return nil, err
	}
	if err := pub.Verify(s.req.SigAlgo, r.Load, r.Sig); err != nil {
		return nil, err
	}
	open := func(sealed []byte) (text []byte, key saltcrypt.Key, err error) {
		if text, err = s.m.key.DecryptOAEP(s.req.EncAlgo, sealed); err == nil {
			key, err = saltcrypt.ParseKey(string(text))
		}
		return text, key, err
	}
	aes, aesKey, err := open(r.AES)
	if err != nil {
		return nil, fmt.Errorf("%w: aes: %w", errReply, err)
	}
	_, session, err := open(r.Session)
	if err != nil {
		return nil, fmt.Errorf("%w: session: %w", errReply, err)
	}
	sum := sha256.Sum256(aes)
	if proof, err := pub.VerifyX931(r.SigX931); err != nil || string(proof) != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: sig", errReply)
	}
	if s.token != nil {
		if echo, _, err := open(r.Token); err != nil || !bytes.Equal(echo, s.token) {
			return nil, fmt.Errorf("%w: token", errReply)
		}
	}
	if r.Nonce != s.req.Nonce {
		return nil, fmt.Errorf("%w: nonce", errReply)
	}
	return &credentials{s.m, pub, aesKey, saltcrypt.NewCrypticle(session)}, nil
}

// request seals a command without arguments.
func (c *credentials) request(cmd string) (body []byte, nonce string, err error) {
	if nonce, err = newNonce(); err != nil {
		return nil, "", err
	}
	load, err := saltwire.AppendAny(nil, map[string]any{
		"cmd": cmd, "id": c.m.id, "nonce": nonce, "ts": time.Now().Unix(), "tok": c.m.tok,
	}, saltwire.Wire)
	if err != nil {
		return nil, "", err
	}
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Version: 3, HasVersion: true, ID: c.m.id, EncAlgo: saltcrypt.OAEPSHA1,
		SigAlgo: saltcrypt.PKCS1v15SHA1, Load: c.session.Seal(nil, load, nil),
	}), nonce, nil
}

// checkReply opens the reply to a request.
func (c *credentials) checkReply(reply []byte, nonce string) error {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return fmt.Errorf("%s: the reply is no byte string", c.m.id)
	}
	plain, err := c.session.Open(nil, sealed)
	if err != nil {
		return fmt.Errorf("%s: %w (%.40q)", c.m.id, err, sealed)
	}
	if len(plain) <= len(nonce) || string(plain[:len(nonce)]) != nonce {
		return fmt.Errorf("%s: the reply has another nonce, or nothing behind it", c.m.id)
	}
	return nil
}

func newNonce() (string, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw[:]), nil
}
