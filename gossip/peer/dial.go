package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"saltclusterd/gossip/node"
)

// Dial connects to a member for one protocol (ProtoRaft, ProtoGossip or ProtoHTTP) and returns a *tls.Conn. The
// certificate must be the one the roster has for id. It takes at most Limits.Handshake, or until ctx ends. For all but
// gossip the connection may go through another member.
func (p *Port) Dial(ctx context.Context, id node.ID, proto string) (net.Conn, error) {
	if proto == ProtoGossip || !p.ways.isIndirect(id) {
		return p.dialDirectly(ctx, id, proto)
	}
	t, err := p.dialAnyWay(ctx, id, proto)
	if err != nil {
		return nil, p.dialFailed(id, proto, err)
	}
	if isTunnelled(t) && !p.ways.isIndirect(id) { // raft would keep it, and noteDirect has not seen it
		_ = Cut(t)
		return p.dialDirectly(ctx, id, proto)
	}
	return t, nil
}

// dialDirectly is Dial without a tunnel: for those that keep the connection when there is a direct way again.
func (p *Port) dialDirectly(ctx context.Context, id node.ID, proto string) (net.Conn, error) {
	t, err := p.dialMember(ctx, id, proto)
	if err == nil {
		return t, nil
	}
	if proto != ProtoGossip && isCutOff(err) {
		p.suspectDial(id)
	}
	return nil, p.dialFailed(id, proto, err)
}

func (p *Port) dialFailed(id node.ID, proto string, err error) error {
	p.m.dialFailed.WithLabelValues(proto).Inc()
	return fmt.Errorf("dial %s for %s: %w", id, proto, err)
}

func isTunnelled(t *tls.Conn) bool {
	raw, ok := t.NetConn().(*conn)
	return ok && raw.through != ""
}

func (p *Port) dialMember(ctx context.Context, id node.ID, proto string) (*tls.Conn, error) {
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.Handshake)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()

	entry, ok := p.cfg.Roster.Lookup(id)
	if !ok {
		return nil, ErrUnknownNode
	}
	c, err := connectTCP(ctx, entry.Addr, proto)
	if err != nil {
		return nil, err
	}
	raw, err := p.reg.trackConn(c, outbound)
	if err != nil {
		return nil, err
	}
	t, err := p.startTLS(ctx, raw, id, proto)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return t, nil
}

func (p *Port) startTLS(ctx context.Context, raw *conn, id node.ID, proto string) (*tls.Conn, error) {
	t := tls.Client(raw, clientTLS(p.cfg.Identity, proto, func(s shown) error {
		_, _, err := p.memberIs(id, s)
		return err
	}))
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	peer, err := peerCert(t.ConnectionState())
	if err != nil {
		return nil, err
	}
	if err := p.reg.admitConn(raw, proto, func() (node.ID, node.Fingerprint, error) {
		return p.memberIs(id, peer)
	}); err != nil {
		return nil, err
	}
	if hasGreeting(proto) {
		return t, awaitGreeting(ctx, t)
	}
	return t, nil
}

// memberIs asks the roster whether that is exactly this member.
func (p *Port) memberIs(id node.ID, s shown) (node.ID, node.Fingerprint, error) {
	e, ok := p.cfg.Roster.Lookup(id)
	if !ok {
		return "", "", ErrUnknownNode
	}
	fp, ok := s.knownAs(e)
	if !ok {
		return "", "", ErrWrongNode
	}
	return id, fp, nil
}

// awaitGreeting waits until the other side says that it has admitted us.
func awaitGreeting(ctx context.Context, t *tls.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := t.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = t.SetReadDeadline(time.Unix(1, 0)) })
	var word [1]byte
	_, err := io.ReadFull(t, word[:])
	switch {
	case !stop():
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("wait for admission: %w", err)
	case word[0] == greetBusy:
		return ErrBusy
	case word[0] != greetAdmitted:
		return fmt.Errorf("wait for admission: unexpected greeting %d", word[0])
	}
	return t.SetReadDeadline(time.Time{})
}
