package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"saltclusterd/gossip/jointoken"
	"saltclusterd/gossip/node"
)

// serveJoin is the member's side of one join. Whatever goes wrong before the joiner has proved the secret, it learns
// nothing but a code that says nothing about the cluster.
func (p *Port) serveJoin(t *tls.Conn, raw *conn, leave func()) {
	defer raw.Close()
	s := &joinServer{port: p, conn: t, leaveGate: leave, from: hostOf(raw.RemoteAddr())}
	result, err := s.serveJoin(p.ctx)
	p.m.joins.WithLabelValues(result).Inc()
	attrs := []any{"result", result, "remote", raw.RemoteAddr().String(), "node", s.id.String()}
	switch {
	case p.ctx.Err() != nil:
		return
	case result == "joined":
		p.log.Info("node joined", append(attrs, "fingerprint", s.fp.Short())...)
	case err == nil, result == "broken":
		p.log.Debug("join not served", append(attrs, "err", err)...) // anyone can cause these
	default:
		p.log.Warn("join refused", append(attrs, "err", err)...)
	}
	lingeringClose(t)
}

// lingeringClose ends the TLS stream and reads what is still under way: closing with unread bytes would reset the
// connection, and a refusal would be lost with it.
func lingeringClose(t *tls.Conn) {
	_ = t.SetDeadline(time.Now().Add(time.Second))
	if t.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, t, 2*maxUnproven)
	}
}

// joinServer is one conversation, from the member's side.
type joinServer struct {
	port  *Port
	conn  *tls.Conn
	from  netip.Addr
	id    node.ID // claimed until the proof is checked
	fp    node.Fingerprint
	proof Proof

	leaveGate func() // gives up the place among strangers
}

func (s *joinServer) serveJoin(ctx context.Context) (result string, err error) {
	p := s.port
	if !p.guard.startAttempt(countAs(s.from)) {
		return "slow_down", s.sendRefusal(refusedSlowDown, "")
	}
	if err := s.conn.SetDeadline(time.Now().Add(p.cfg.Limits.JoinProof)); err != nil {
		return "broken", err
	}
	if p.cfg.Join == nil || !isMember(p.cfg.Roster, p.cfg.Identity) {
		return "not_ready", s.sendRefusal(refusedNotReady, "")
	}
	h, err := s.readHello()
	if errors.Is(err, errVersion) {
		return "version", s.sendRefusal(refusedVersion, "")
	}
	if err != nil {
		return "broken", err
	}
	proven, err := s.checkProof(h)
	if err != nil {
		wrong, pause := p.guard.noteFailure(countAs(s.from))
		_ = s.sendRefusal(refusedProof, "") // the error to return is the wrong proof
		return "wrong_proof", fmt.Errorf("%w; number %d in a row from that address, which waits %s now", err, wrong, pause)
	}
	p.guard.noteSuccess(countAs(s.from))
	leave, ok := p.guard.takePlace()
	if !ok {
		return "slow_down", s.sendRefusal(refusedSlowDown, "")
	}
	defer leave()
	s.leaveGate()
	if err := s.sendProof(proven); err != nil {
		return "broken", err
	}
	return s.admitJoiner(ctx, h, proven)
}

// readHello reads the joiner's proof and gathers what it must be over.
func (s *joinServer) readHello() (hello, error) {
	peer, err := peerCert(s.conn.ConnectionState())
	if err != nil {
		return hello{}, err
	}
	claimed, err := idFromCert(peer.cert)
	if err != nil {
		return hello{}, err
	}
	s.id, s.fp = claimed, peer.fingerprint()
	kind, body, err := readFrame(s.conn, maxUnproven)
	if err != nil {
		return hello{}, err
	}
	if kind != frameHello {
		return hello{}, fmt.Errorf("%w: unexpected type %d", errFrame, kind)
	}
	h, err := parseHello(body)
	if err != nil {
		return hello{}, err
	}
	if h.ID != claimed {
		return hello{}, fmt.Errorf("it calls itself %q, but its certificate says %q", h.ID, claimed)
	}
	material, err := exportKeying(s.conn)
	if err != nil {
		return hello{}, err
	}
	own := s.port.cfg.Identity
	s.proof = Proof{Exporter: material, Joiner: h.ID, JoinerFP: s.fp, Member: own.id, MemberFP: own.Fingerprint()}
	return h, nil
}

// proven is what a joiner has shown to know.
type proven struct {
	token  string
	secret JoinSecret
}

// checkProof finds out what the joiner's proof is of.
func (s *joinServer) checkProof(h hello) (proven, error) {
	if h.Signed {
		public, known := s.port.cfg.Join.JoinToken(h.SecretID)
		if !known {
			return proven{}, fmt.Errorf("the token %q is not known here", h.SecretID)
		}
		if !jointoken.Verify(public, s.proof.tokenMessage(h.SecretID), h.Proof) {
			return proven{}, fmt.Errorf("the proof does not match the token %q: the joiner may be guessing it", h.SecretID)
		}
		return proven{token: h.SecretID}, nil
	}
	for _, secret := range s.port.cfg.Join.JoinSecrets() {
		if h.SecretID == "" && len(secret.Key) > 0 && s.proof.verifyMAC(secret.Key, roleJoiner, h.Proof) {
			return proven{secret: secret}, nil
		}
	}
	return proven{}, errors.New("the proof does not match: cluster_secret differs there, or the joiner is guessing it")
}

// sendProof proves the secret to the joiner unless it came with a token, and shows the cluster's id and key.
func (s *joinServer) sendProof(p proven) error {
	if p.token == "" {
		if err := writeFrame(s.conn, frameProof, s.proof.macFor(p.secret.Key, roleMember)); err != nil {
			return err
		}
	}
	h := s.port.cfg.Join
	sig, pub, err := h.SignChannel(s.proof.clusterMessage())
	if err != nil {
		return errors.Join(err, s.sendRefusal(refusedInternal, ""))
	}
	return writeFrame(s.conn, frameCluster, clusterProof{ClusterID: h.ClusterID(), PubPEM: pub,
		Signature: sig}.appendTo(nil))
}

// admitJoiner reads the request of a joiner that has proved the secret, asks the handler and sends its reply.
func (s *joinServer) admitJoiner(ctx context.Context, h hello, p proven) (result string, err error) {
	kind, body, err := readFrame(s.conn, MaxJoinPayload+fieldOverhead)
	if err != nil {
		return "left", fmt.Errorf("it has the right to join, but disconnected after it saw our cluster_id and key: %w", err)
	}
	if kind != frameRequest {
		return "broken", fmt.Errorf("%w: unexpected type %d", errFrame, kind)
	}
	req, err := s.parseJoin(h, p, body)
	if err == nil {
		var reply []byte
		if reply, err = s.askHandler(ctx, req); err == nil {
			return s.sendReply(reply)
		}
	}
	_ = s.conn.SetDeadline(time.Now().Add(s.port.cfg.Limits.JoinProof))
	var no *Refusal
	if errors.As(err, &no) {
		return "refused", errors.Join(err, s.sendRefusal(refusedByAdmit, no.Text))
	}
	return "failed", errors.Join(err, s.sendRefusal(refusedInternal, ""))
}

func (s *joinServer) parseJoin(h hello, p proven, body []byte) (JoinRequest, error) {
	r, err := parseRequest(body)
	if err != nil {
		return JoinRequest{}, err
	}
	if own := s.port.cfg.Join.ClusterID(); r.ClusterID != own {
		return JoinRequest{}, Refusef("this is the cluster %q, but cluster_id there is %q", own, r.ClusterID)
	}
	addr, err := node.ParseAddr(r.Advertise)
	if err != nil {
		return JoinRequest{}, Refusef("cluster_advertise there: %v", err)
	}
	req := JoinRequest{
		ID: h.ID, Advertise: addr, Fingerprint: s.fp, ClusterID: r.ClusterID,
		Token: p.token, Secret: p.secret.N, Payload: r.Payload,
	}
	if a, ok := s.conn.RemoteAddr().(*net.TCPAddr); ok {
		req.Remote = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	return req, nil
}

func (s *joinServer) askHandler(ctx context.Context, req JoinRequest) ([]byte, error) {
	limit := s.port.cfg.Limits.JoinAdmit
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := s.port.cfg.Join.Admit(ctx, req)
	if err == nil && len(reply) > MaxJoinReply {
		return nil, fmt.Errorf("the reply has %d bytes, at most %d are allowed", len(reply), MaxJoinReply)
	}
	return reply, err
}

func (s *joinServer) sendReply(b []byte) (result string, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(s.port.cfg.Limits.JoinAdmit)); err != nil {
		return "broken", err
	}
	if err := writeFrame(s.conn, frameReply, b); err != nil {
		return "unheard", fmt.Errorf("it was admitted, but did not get the answer: %w", err)
	}
	return "joined", nil
}

// sendRefusal tells the joiner a code, and a text if it has proved the secret.
func (s *joinServer) sendRefusal(code byte, text string) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	return writeFrame(s.conn, frameRefused, refused{Code: code, Text: text}.appendTo(nil))
}
