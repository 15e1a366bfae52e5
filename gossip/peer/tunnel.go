package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// A tunnel is a TCP connection to a member that another member makes and passes on, byte by byte, for one that does not
// reach it directly. TLS is spoken from end to end within it: the member in between has no keys of it, and the one that
// is reached sees the certificate of the one that asked.
//
// A tunnel is opened on a connection of ProtoTunnel: one byte is the length of a node id, the id follows. The answer is
// one byte.
const (
	tunnelOpen        = greetAdmitted
	tunnelBusy        = greetBusy
	tunnelUnknown     = 3 // the member in between has no such node on its roster
	tunnelUnreachable = 4 // it does not reach the node either
)

// tunnelBuffer is bytes that are on their way in one direction of a tunnel.
const tunnelBuffer = 32 << 10

var (
	errTunnelUnreachable = errors.New("the member in between does not reach it either")
	errNoWay             = errors.New("no other member can be asked for a tunnel now")
	errMade              = errors.New("another request has made a tunnel in the meantime")
)

// serveTunnel makes a connection to the member that the other side names, and passes bytes on until one side ends.
func (p *Port) serveTunnel(t *tls.Conn, raw *conn) (reason string, err error) {
	if err := p.admitInbound(t.ConnectionState(), raw); err != nil {
		return "roster", err
	}
	defer raw.Close()
	if err := t.SetDeadline(time.Now().Add(p.cfg.Limits.Handshake)); err != nil {
		return "tunnel", err
	}
	id, err := readTunnelTarget(t)
	if err != nil {
		return "tunnel", err
	}
	leave, ok := p.tunnels.takePlace(raw.id)
	if !ok {
		_, _ = t.Write([]byte{tunnelBusy})
		return "busy", ErrTooMany
	}
	defer leave()
	target, answer := p.connectTarget(id, raw.id)
	if target != nil {
		defer target.Close()
	}
	if _, err := t.Write([]byte{answer}); err != nil {
		return "tunnel", err
	}
	if target == nil {
		lingeringClose(t)
		return "", nil
	}
	if err := t.SetDeadline(time.Time{}); err != nil {
		return "tunnel", err
	}
	p.m.accepted.WithLabelValues(ProtoTunnel).Inc()
	p.m.tunnels.Inc()
	defer p.m.tunnels.Dec()
	passBytes(t, raw, target)
	return "", nil
}

// connectTarget makes the connection of a tunnel, to nothing but a member.
func (p *Port) connectTarget(id, from node.ID) (*conn, byte) {
	entry, ok := p.cfg.Roster.Lookup(id)
	if !ok || id == from || id == p.cfg.Identity.id {
		return nil, tunnelUnknown
	}
	if p.ways.isIndirect(id) { // to find out once more would take whom asks as long as it has
		return nil, tunnelUnreachable
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Limits.Handshake/2) // who asks has not long to wait
	defer cancel()
	err := p.expectMember(ctx, entry)
	var c net.Conn
	if err == nil {
		c, err = connectTCP(ctx, entry.Addr, ProtoHTTP)
	}
	if err != nil {
		if isCutOff(err) {
			p.suspectDial(id)
		}
		return nil, tunnelUnreachable
	}
	target, err := p.reg.trackConn(c, outbound)
	if err != nil {
		return nil, tunnelBusy
	}
	// So that it ends with the member's certificate, whatever its two ends think of that.
	err = p.reg.admitConn(target, ProtoTunnel, func() (node.ID, node.Fingerprint, error) {
		now, ok := p.cfg.Roster.Lookup(id)
		if !ok || now.Addr != entry.Addr {
			return "", "", ErrUnknownNode
		}
		return id, now.Fingerprint, nil
	})
	if err != nil {
		_ = target.Close()
		return nil, tunnelBusy
	}
	return target, tunnelOpen
}

// expectMember checks that it is the member that answers at its address: members say themselves where they are, and a
// stolen one could have others connect to whatever they reach.
func (p *Port) expectMember(ctx context.Context, e node.Entry) error {
	if p.reg.hasDirect(e) {
		return nil
	}
	t, err := p.dialMember(ctx, e.ID, ProtoHTTP)
	if err == nil {
		_ = Cut(t)
	}
	return err
}

// passBytes copies in both directions until one side ends, and cuts both then. raw is what is below near.
func passBytes(near net.Conn, raw, far *conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.CopyBuffer(onlyWriter{near}, onlyReader{far}, make([]byte, tunnelBuffer))
		_ = raw.Close()
	})
	_, _ = io.CopyBuffer(onlyWriter{far}, onlyReader{near}, make([]byte, tunnelBuffer))
	_ = far.Close()
	_ = raw.Close()
	back.Wait()
}

// onlyReader and onlyWriter keep io.CopyBuffer from using anything but the buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

func readTunnelTarget(r io.Reader) (node.ID, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", fmt.Errorf("read the target of a tunnel: %w", err)
	}
	b := make([]byte, n[0])
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("read the target of a tunnel: %w", err)
	}
	return node.ParseID(string(b))
}

func appendTunnelTarget(dst []byte, id node.ID) []byte {
	return append(append(dst, byte(len(id))), id...)
}

// dialAnyWay connects to a member directly or through another one, whichever is made first. The error is that of the
// direct way.
func (p *Port) dialAnyWay(ctx context.Context, id node.ID, proto string) (*tls.Conn, error) {
	if p.ways.isUnproven(id) { // handshakes say nothing about the direct way
		t, err := p.dialTunnel(ctx, id, proto)
		if err == nil {
			p.noteUsed(id)
		}
		if err == nil || errors.Is(err, errMade) {
			return t, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		t   *tls.Conn
		err error
	}
	directly, through := make(chan outcome, 1), make(chan outcome, 1)
	var dialling sync.WaitGroup
	defer dialling.Wait()
	dial := func(to chan<- outcome, way func(context.Context, node.ID, string) (*tls.Conn, error)) {
		dialling.Go(func() {
			t, err := way(ctx, id, proto)
			to <- outcome{t, err}
		})
	}
	dial(directly, p.dialMember)
	dial(through, p.dialTunnel)
	drop := func(other <-chan outcome) {
		cancel()
		if o := <-other; o.err == nil {
			_ = Cut(o.t)
		}
	}
	select {
	case o := <-directly:
		if !isCutOff(o.err) {
			drop(through)
			_ = p.noteDirect(id, o.err)
			return o.t, o.err
		}
		if tunnel := <-through; tunnel.err == nil {
			p.noteUsed(id)
			return tunnel.t, nil
		}
		return nil, o.err
	case o := <-through:
		if o.err == nil {
			drop(directly)
			p.noteUsed(id)
			return o.t, nil
		}
		p.log.Debug("no route through another member", "node", id, "err", o.err)
		d := <-directly
		if !isCutOff(d.err) {
			_ = p.noteDirect(id, d.err)
		}
		return d.t, d.err
	}
}

func (p *Port) noteUsed(id node.ID) {
	if p.ways.noteUsed(id) {
		p.log.Warn("a member is reached through another one only", "node", id)
	}
}

// dialTunnel connects to a member through another one.
func (p *Port) dialTunnel(ctx context.Context, id node.ID, proto string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.Handshake)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	if proto == ProtoHTTP {
		leave, err := p.ways.takeTurn(ctx, id)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	outer, through, err := p.openTunnel(ctx, id)
	if err != nil {
		return nil, err
	}
	raw, err := p.reg.trackConn(cutConn{outer}, outbound)
	if err != nil {
		return nil, err
	}
	raw.through = through
	t, err := p.startTLS(ctx, raw, id, proto)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("through %s: %w", through, err)
	}
	p.ways.noteMade(id, through)
	return t, nil
}

// maxAsked is how many members are asked for the same tunnel.
const maxAsked = 4

// openTunnel returns the first tunnel that a member makes, and who that is. Some are asked at the same time, with the
// one that made the last among them.
func (p *Port) openTunnel(ctx context.Context, id node.ID) (*tls.Conn, node.ID, error) {
	last, ok := p.ways.mayAsk(id, time.Now())
	if !ok {
		return nil, "", errNoWay
	}
	var asked []node.ID
	for _, e := range p.cfg.Roster.Entries() {
		if e.ID != id && e.ID != p.cfg.Identity.id && !p.ways.isIndirect(e.ID) {
			asked = append(asked, e.ID)
		}
	}
	rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	if i := slices.Index(asked, last); i >= 0 {
		asked[0], asked[i] = asked[i], asked[0]
	}
	asked = asked[:min(len(asked), maxAsked)]
	asking, cancel := context.WithCancel(ctx)
	var answers sync.WaitGroup
	defer answers.Wait()
	defer cancel()
	type outcome struct {
		t       *tls.Conn
		through node.ID
		err     error
	}
	outcomes := make(chan outcome)
	for _, through := range asked {
		answers.Go(func() {
			t, err := p.askTunnel(asking, through, id)
			select {
			case outcomes <- outcome{t, through, err}:
			case <-asking.Done():
				if err == nil {
					_ = Cut(t)
				}
			}
		})
	}
	failed := errNoWay
	for range asked {
		select {
		case o := <-outcomes:
			if o.err == nil {
				return o.t, o.through, nil
			}
			failed = o.err
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
	if ctx.Err() == nil {
		p.ways.noteNoTunnel(id, time.Now())
	}
	return nil, "", failed
}

// askTunnel asks a member for a tunnel.
func (p *Port) askTunnel(ctx context.Context, via, id node.ID) (*tls.Conn, error) {
	t, err := p.dialMember(ctx, via, ProtoTunnel)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", via, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = Cut(t) })
	answer := []byte{0}
	_, err = t.Write(appendTunnelTarget(nil, id))
	if err == nil {
		_, err = io.ReadFull(t, answer)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = tunnelError(answer[0])
	}
	if err != nil {
		_ = Cut(t)
		return nil, fmt.Errorf("ask %s: %w", via, err)
	}
	return t, nil
}

func tunnelError(answer byte) error {
	switch answer {
	case tunnelOpen:
		return nil
	case tunnelBusy:
		return ErrBusy
	case tunnelUnknown:
		return ErrUnknownNode
	case tunnelUnreachable:
		return errTunnelUnreachable
	default:
		return fmt.Errorf("unexpected answer %d", answer)
	}
}

// cutConn is a tunnel whose Close does not wait for the other side.
type cutConn struct{ *tls.Conn }

// Close implements net.Conn.
func (c cutConn) Close() error { return Cut(c.Conn) }

// places bounds the tunnels that are open for each member.
type places struct {
	most int

	mu    sync.Mutex
	taken map[node.ID]int
}

// takePlace takes a place of a member; false: there is none. leave must be called once after true.
func (s *places) takePlace(id node.ID) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[id] >= s.most {
		return nil, false
	}
	s.taken[id]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[id]--; s.taken[id] == 0 {
			delete(s.taken, id)
		}
	}, true
}
