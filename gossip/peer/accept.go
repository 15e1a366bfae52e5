package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// acceptConnections takes tcp connections and starts a goroutine for each; it does nothing that could wait for a peer.
func (p *Port) acceptConnections() {
	const first, most = 5 * time.Millisecond, time.Second
	pause := backoff.Backoff{Min: first, Max: most}
	for {
		c, err := p.ln.Accept()
		switch {
		case err == nil:
			pause.Reset()
			p.startHandshake(c)
			continue
		case p.ctx.Err() != nil, p.retired.Load():
			return
		case errors.Is(err, net.ErrClosed):
			p.cancel(fmt.Errorf("peer port: %w", err))
			return
		}
		// Mostly a lack of descriptors: continue, slowly.
		p.log.Warn("accepting peer connections fails", "err", err)
		if !pause.Wait(p.ctx) {
			return
		}
	}
}

func (p *Port) startHandshake(c net.Conn) {
	addr := hostOf(c.RemoteAddr())
	refuse := func() {
		p.m.refused.WithLabelValues("flood").Inc()
		_ = c.Close()
	}
	leave, ok := p.gate.takePlace(countAs(addr), hasAddr(p.cfg.Roster, addr), refuse)
	if !ok {
		refuse()
		return
	}
	raw, err := p.reg.trackConn(c, inbound)
	if err != nil {
		leave()
		return
	}
	p.wg.Go(func() {
		defer leave()
		p.shakeHands(raw, leave)
	})
}

// shakeHands does the TLS handshake and passes the connection on. leave frees the place among the handshakes.
func (p *Port) shakeHands(raw *conn, leave func()) {
	t := tls.Server(raw, p.serverTLS())
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Limits.Handshake)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		p.refuseConn(raw, "handshake", err)
		return
	}
	switch t.ConnectionState().NegotiatedProtocol { // still a stranger: it keeps its place
	case ProtoJoin:
		p.serveJoin(t, raw, leave)
		return
	case ProtoStanding:
		p.serveStanding(t, raw)
		return
	}
	leave()
	take := p.deliverConn
	if t.ConnectionState().NegotiatedProtocol == ProtoTunnel {
		take = p.serveTunnel
	}
	if reason, err := take(t, raw); err != nil {
		p.refuseConn(raw, reason, err)
	}
}

// deliverConn admits the connection and hands it to the consumer of its protocol.
func (p *Port) deliverConn(t *tls.Conn, raw *conn) (reason string, err error) {
	cs := t.ConnectionState()
	if err := p.admitInbound(cs, raw); err != nil {
		return "roster", err
	}
	l := p.openListener(cs.NegotiatedProtocol)
	if l == nil || !l.reserveSlot(p.cfg.Limits.Handshake) {
		if hasGreeting(cs.NegotiatedProtocol) {
			_ = sendGreeting(t, greetBusy, p.cfg.Limits.Handshake)
		}
		return "busy", ErrBusy
	}
	if hasGreeting(cs.NegotiatedProtocol) {
		if err := sendGreeting(t, greetAdmitted, p.cfg.Limits.Handshake); err != nil {
			l.releaseSlot()
			return "greeting", err
		}
	}
	if !l.queueConn(t) {
		return "busy", ErrBusy
	}
	p.m.accepted.WithLabelValues(cs.NegotiatedProtocol).Inc()
	return "", nil
}

func (p *Port) admitInbound(cs tls.ConnectionState, raw *conn) error {
	peer, err := peerCert(cs)
	if err != nil {
		return err
	}
	return p.reg.admitConn(raw, cs.NegotiatedProtocol,
		func() (node.ID, node.Fingerprint, error) { return peer.findMember(p.cfg.Roster) })
}

// refuseConn cuts a connection that was not handed to anyone.
func (p *Port) refuseConn(raw *conn, reason string, err error) {
	_ = raw.Close()
	if p.ctx.Err() != nil {
		return
	}
	p.m.refused.WithLabelValues(reason).Inc()
	p.log.Debug("peer connection refused", "remote", raw.RemoteAddr().String(), "reason", reason, "err", err)
}

func sendGreeting(t *tls.Conn, word byte, limit time.Duration) error {
	if err := t.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := t.Write([]byte{word}); err != nil {
		return err
	}
	return t.SetWriteDeadline(time.Time{})
}
