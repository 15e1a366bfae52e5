package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"saltclusterd/gossip/node"
)

// A node that was removed while it was away hears nothing from anyone: no leader calls it, and whoever it dials refuses
// its certificate, as a member that is only behind does. So a node may ask a member what the roster says of it. Any
// certificate may ask, because the one that matters has stopped being a member's; the answer is a few bytes and says
// nothing about any other node.

// Standing is what a member's roster says of the node that asks.
type Standing struct {
	Member     bool
	Rev        uint64 // revision of the roster that was asked
	Generation uint64 // of the cluster, see consensus/state
}

const (
	standingVersion = 1
	standingSize    = 18 // bytes: version, flags, rev, generation
	standingMember  = 1
)

var errStanding = errors.New("malformed answer about our standing")

func (s Standing) appendTo(dst []byte) []byte {
	flags := byte(0)
	if s.Member {
		flags = standingMember
	}
	dst = append(dst, standingVersion, flags)
	dst = binary.BigEndian.AppendUint64(dst, s.Rev)
	return binary.BigEndian.AppendUint64(dst, s.Generation)
}

func parseStanding(b []byte) (Standing, error) {
	if len(b) != standingSize || b[0] != standingVersion || b[1]&^standingMember != 0 {
		return Standing{}, errStanding
	}
	return Standing{
		Member: b[1] == standingMember, Rev: binary.BigEndian.Uint64(b[2:]), Generation: binary.BigEndian.Uint64(b[10:]),
	}, nil
}

// serveStanding answers a question and reads nothing. It shares the joins' rates, the other thing that strangers may
// ask for.
func (p *Port) serveStanding(t *tls.Conn, raw *conn) {
	defer raw.Close()
	if p.cfg.Standing == nil {
		p.m.refused.WithLabelValues("standing").Inc()
		return
	}
	if !p.guard.startAttempt(countAs(hostOf(raw.RemoteAddr()))) {
		p.m.refused.WithLabelValues("standing").Inc()
		return
	}
	peer, err := peerCert(t.ConnectionState())
	if err != nil {
		return
	}
	id, err := idFromCert(peer.cert)
	if err != nil || t.SetDeadline(time.Now().Add(p.cfg.Limits.Handshake)) != nil {
		return
	}
	fp := peer.fingerprint()
	if e, ok := p.cfg.Roster.Lookup(id); ok {
		if known, ok := peer.knownAs(e); ok { // it has renewed its certificate, and we have not heard of it yet
			fp = known
		}
	}
	if _, err := t.Write(p.cfg.Standing(id, fp).appendTo(nil)); err == nil {
		lingeringClose(t)
	}
}

// AskStanding asks a member what its roster says of this node. It takes at most Limits.Handshake.
func (p *Port) AskStanding(ctx context.Context, id node.ID) (Standing, error) {
	t, err := p.dialMember(ctx, id, ProtoStanding)
	if err != nil {
		return Standing{}, fmt.Errorf("ask %s for our standing: %w", id, err)
	}
	return p.readStanding(ctx, t, id)
}

// AskFormer is AskStanding of a node that was on our roster as e and is not any more.
func (p *Port) AskFormer(ctx context.Context, e node.Entry) (Standing, error) {
	t, err := p.dialFormer(ctx, e)
	if err != nil {
		return Standing{}, fmt.Errorf("ask %s for our standing: %w", e.ID, err)
	}
	return p.readStanding(ctx, t, e.ID)
}

func (p *Port) dialFormer(ctx context.Context, e node.Entry) (*tls.Conn, error) {
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.Handshake)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Addr.String())
	if err != nil {
		return nil, err
	}
	raw, err := p.reg.trackConn(c, outbound)
	if err != nil {
		return nil, err
	}
	t := tls.Client(raw, clientTLS(p.cfg.Identity, ProtoStanding, func(s shown) error {
		if _, ok := s.knownAs(e); !ok {
			return ErrWrongNode
		}
		return nil
	}))
	if err := t.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return t, nil
}

// readStanding reads the answer and closes.
func (p *Port) readStanding(ctx context.Context, t *tls.Conn, id node.ID) (Standing, error) {
	defer func() { _ = Cut(t) }()
	deadline := time.Now().Add(p.cfg.Limits.Handshake)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	b := make([]byte, standingSize)
	err := t.SetReadDeadline(deadline)
	if err == nil {
		_, err = io.ReadFull(t, b)
	}
	if err != nil {
		return Standing{}, fmt.Errorf("ask %s for our standing: %w", id, err)
	}
	s, err := parseStanding(b)
	if err != nil {
		return Standing{}, fmt.Errorf("ask %s: %w", id, err)
	}
	return s, nil
}
