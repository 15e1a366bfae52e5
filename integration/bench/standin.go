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

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// standIn plays a stock master where none is fast enough: it accepts every sign-in (there is only that of saltclusterd itself)
// and answers every sealed request with an empty map.
type standIn struct {
	key *saltcrypt.MasterKey
	aes saltcrypt.Key

	crypticle *saltcrypt.Crypticle // of aes
	sessions  atomic.Pointer[map[string]*saltcrypt.Crypticle]
	req       *edge.ReqEdge
	pub       *edge.PubEdge

	probesOnly atomic.Bool // of publish
}

// newStandIn listens where the master of that host would, with the identity it would have.
func newStandIn(ctx context.Context, m *lab.Master) (*standIn, error) {
	s := &standIn{}
	var err error
	if s.key, err = saltcrypt.GenerateMasterKey(2048); err != nil {
		return nil, err
	}
	if s.aes, err = saltcrypt.NewKey(); err != nil {
		return nil, err
	}
	s.crypticle = saltcrypt.NewCrypticle(s.aes)
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

func (s *standIn) close() error { return errors.Join(s.req.Close(), s.pub.Close()) }

// trust tells the session keys that minions got from saltclusterd.
func (s *standIn) trust(creds []*herd.Credentials) {
	all := map[string]*saltcrypt.Crypticle{}
	for _, c := range creds {
		all[c.ID()] = c.Session()
	}
	s.sessions.Store(&all)
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
		return nil, errors.New("nobody's session")
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

// parseSignIn reads what is needed of a sign-in. saltwire.ParseAuth would refuse that of saltclusterd: minions from the network
// may not have a name like its.
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

// standIn measures what needs no stock master.
func (b *bench) standIn(ctx context.Context) error {
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		n, err := b.standInNode(ctx, l)
		if err != nil {
			return err
		}
		defer n.standIn.close()
		if b.wants("forward") {
			// Not awake: a thread that is woken must not wait until an idle one gives way.
			if err := b.forwardFull(ctx, n.direct, n.through); err != nil {
				return err
			}
		}
		if b.wants("flood") {
			if err := b.flood(ctx, l, n.through); err != nil {
				return err
			}
		}
		if b.wants("upgrade") {
			if err := b.upgrade(ctx, n); err != nil {
				return err
			}
		}
		if b.wants("memory") {
			return b.memory(ctx, n)
		}
		return nil
	})
}

// standInNode is saltclusterd before a stand-in, and the ways to both.
type standInNode struct {
	standIn         *standIn
	daemon          *lab.Daemon
	direct, through *target
}

func (b *bench) standInNode(ctx context.Context, l *lab.Lab) (*standInNode, error) {
	minions, err := newMinions(b.minions)
	if err != nil {
		return nil, err
	}
	h, err := l.Host(ctx, "ours")
	if err != nil {
		return nil, err
	}
	from, err := l.Host(ctx, loadHost)
	if err != nil {
		return nil, err
	}
	m, err := h.NewMaster("3008.3", h.Local)
	if err != nil {
		return nil, err
	}
	if err := accept(m, minions, 0); err != nil {
		return nil, err
	}
	n := &standInNode{}
	if n.standIn, err = newStandIn(ctx, m); err != nil {
		return nil, err
	}
	if n.daemon, err = m.NewDaemon(lab.Settings{"log_level": "info"}); err != nil { // which says when it handed over
		return nil, err
	}
	if err := found(ctx, n.daemon); err != nil {
		return nil, err
	}
	n.through = &target{name: "through saltclusterd", addr: h.Addr + ":4506", from: from, daemon: n.daemon.Process}
	n.direct = &target{name: "stand-in", addr: h.Local + ":4506", from: h}
	if err := n.through.enroll(ctx, minions); err != nil {
		return nil, err
	}
	n.direct.creds = n.through.creds
	n.standIn.trust(n.through.creds)
	return n, nil
}
