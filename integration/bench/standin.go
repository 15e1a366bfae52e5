package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// standIn plays a stock master where none is fast enough: it accepts every sign-in (the only one is saltclusterd's) and
// answers every sealed request with an empty map.
type standIn struct {
	key *saltcrypt.MasterKey
	aes saltcrypt.Key

	sessions atomic.Pointer[map[string]*saltcrypt.Crypticle]
	req      *edge.ReqEdge
	pub      *edge.PubEdge
}

// newStandIn listens at the address of a master, with an identity of its own.
func newStandIn(ctx context.Context, m *lab.Master) (*standIn, error) {
	s := &standIn{}
	var err error
	if s.key, err = saltcrypt.GenerateMasterKey(2048); err != nil {
		return nil, err
	}
	if s.aes, err = saltcrypt.NewKey(); err != nil {
		return nil, err
	}
	s.sessions.Store(&map[string]*saltcrypt.Crypticle{})
	if err := os.MkdirAll(m.PKIDir(), 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"master.pem": s.key.PEM(), "master.pub": []byte(s.key.PublicText())} {
		if err := os.WriteFile(filepath.Join(m.PKIDir(), name), text, 0o600); err != nil {
			return nil, fmt.Errorf("make an identity: %w", err)
		}
	}
	if s.req, err = edge.NewReqEdge(edge.ReqConfig{Addrs: []string{m.Addr + ":4506"}, Handler: s}); err != nil {
		return nil, err
	}
	if s.pub, err = edge.NewPubEdge(edge.PubConfig{Addrs: []string{m.Addr + ":4505"}}); err != nil {
		return nil, err
	}
	return s, m.Host().Do(func() error { return errors.Join(s.req.Open(ctx), s.pub.Open(ctx)) })
}

// ServeReq implements edge.ReqHandler.
func (s *standIn) ServeReq(_ context.Context, r *edge.Request) {
	reply, err := s.answer(r.Body)
	if err != nil {
		reply = saltwire.BadLoad()
	}
	r.Reply(reply)
}

func (s *standIn) answer(body []byte) ([]byte, error) {
	env, err := saltwire.ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	if env.Enc == saltwire.EncClear {
		return s.signIn(env.Load)
	}
	session := (*s.sessions.Load())[env.ID]
	if session == nil {
		return nil, errors.New("unknown session")
	}
	plain, err := session.Open(nil, env.Load)
	if err != nil {
		return nil, err
	}
	p, err := saltwire.PeekLoad(plain)
	if err != nil {
		return nil, err
	}
	return saltwire.AppendRaw(nil, session.Seal(nil, saltwire.AppendMapHeader(nil, 0), []byte(p.Nonce))), nil
}

// parseSignIn reads what is needed of a sign-in. saltwire.ParseAuth refuses that of saltclusterd, whose id no minion
// from the network may use.
func parseSignIn(load []byte) (a saltwire.AuthRequest, err error) {
	fields := map[string]*string{"nonce": &a.Nonce, "pub": &a.Pub, "enc_algo": &a.EncAlgo, "sig_algo": &a.SigAlgo}
	err = saltwire.WalkMap(load, func(key, value []byte) error {
		if f := fields[string(key)]; f != nil {
			b, _ := saltwire.Bytes(value)
			*f = string(b)
		}
		return nil
	})
	return a, err
}

func (s *standIn) signIn(load []byte) ([]byte, error) {
	req, err := parseSignIn(load)
	if err != nil {
		return nil, err
	}
	pub, err := saltcrypt.ParsePublicKey(req.Pub)
	if err != nil {
		return nil, err
	}
	a := saltwire.AuthAccept{PubKey: s.key.PublicText(), PublishPort: 4505, Nonce: req.Nonce}
	text := []byte(s.aes.Text())
	sum := sha256.Sum256(text)
	var errs [3]error
	a.AES, errs[0] = pub.EncryptOAEP(req.EncAlgo, text)
	a.Session, errs[1] = pub.EncryptOAEP(req.EncAlgo, text)
	a.Sig, errs[2] = s.key.SignX931([]byte(hex.EncodeToString(sum[:])))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	signed := saltwire.AppendAuthAccept(nil, a)
	sig, err := s.key.Sign(req.SigAlgo, signed)
	return saltwire.AppendSigned(nil, signed, sig), err
}

// standIn starts saltclusterd in front of a stand-in, and returns the ways to both.
func (b *bench) standIn(ctx context.Context, l *lab.Lab) (direct, through *target, err error) {
	if through, err = newTarget(ctx, l, "3008.3", false); err != nil {
		return nil, nil, err
	}
	if err := through.play(pick(b, 24, 8)); err != nil {
		return nil, nil, err
	}
	s, err := newStandIn(ctx, through.salt)
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(ctx, func() { _ = errors.Join(s.req.Close(), s.pub.Close()) })
	if err := through.start(ctx, false); err != nil {
		return nil, nil, err
	}
	if err := through.enroll(ctx); err != nil {
		return nil, nil, err
	}
	sessions := map[string]*saltcrypt.Crypticle{}
	for _, c := range through.creds {
		sessions[c.ID()] = c.Session()
	}
	s.sessions.Store(&sessions)
	direct = &target{name: "a stand-in", addr: through.host.Local + ":4506", from: through.host, creds: through.creds}
	return direct, through, nil
}
