package gossip

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// errShutdown: the transport was closed.
var errShutdown = errors.New("gossip is closed")

const (
	maxPacket  = 64 << 10 // bytes
	recvBuffer = 1 << 20  // bytes asked of the kernel for the socket; it may give less
)

// transport carries memberlist's packets over our udp socket and its streams over the peer port.
type transport struct {
	cfg     Config
	m       *metrics
	lines   io.Writer // the log, bounded
	udp     *net.UDPConn
	streams net.Listener
	filter  *filter
	vet     vetter
	places  chan struct{} // of streams from others
	packets chan *memberlist.Packet
	conns   chan net.Conn

	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	closeOnce sync.Once

	mu   sync.Mutex
	open map[*stream]struct{} // nil after Shutdown
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport takes the socket, also when it fails.
func newTransport(udp *net.UDPConn, cfg Config, m *metrics, keys func() [][]byte) (*transport, error) {
	_ = udp.SetReadBuffer(recvBuffer) // best effort
	streams, err := cfg.Port.Listener(peer.ProtoGossip)
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	t := &transport{
		cfg: cfg, m: m, lines: newLogWriter(cfg.Logger), udp: udp, streams: streams,
		filter: newFilter(cfg.Roster, time.Now),
		vet:    vetter{cfg.Label, keys, time.Now}, places: make(chan struct{}, maxStreams),
		packets: make(chan *memberlist.Packet), conns: make(chan net.Conn), open: map[*stream]struct{}{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.wg.Go(t.readPackets)
	t.wg.Go(t.acceptStreams)
	return t, nil
}

// bindUDP binds the advertised address if the port listens on a wildcard: a socket on a wildcard would answer from
// whatever address the route prefers, and the others drop packets from addresses that are not on the roster. Behind NAT
// the advertised address is not ours to bind; there the wildcard is right.
func bindUDP(ctx context.Context, cfg Config) (*net.UDPConn, error) {
	candidates := []netip.AddrPort{cfg.Bind}
	if !cfg.Bind.IsValid() {
		candidates = []netip.AddrPort{cfg.Port.Addr()}
		if own := cfg.Port.Addr(); own.Addr().IsUnspecified() {
			candidates = []netip.AddrPort{netip.AddrPortFrom(cfg.Port.Advertise().Addr(), own.Port()), own}
		}
	}
	listen := cfg.ListenPacket
	if listen == nil {
		listen = (&net.ListenConfig{}).ListenPacket
	}
	var err error
	for _, addr := range candidates {
		var c net.PacketConn
		if c, err = listen(ctx, "udp", addr.String()); err == nil {
			return c.(*net.UDPConn), nil
		}
	}
	return nil, fmt.Errorf("bind the gossip socket: %w", err)
}

func (t *transport) localAddr() net.Addr { return t.udp.LocalAddr() }

// readPackets passes on what comes from members' addresses.
func (t *transport) readPackets() {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := t.udp.ReadFromUDPAddrPort(buf)
		at := time.Now()
		if t.ctx.Err() != nil {
			return
		}
		if err != nil {
			t.m.dropped.WithLabelValues("error").Inc()
			backoff.Sleep(t.ctx, 10*time.Millisecond) // a failing socket must not burn a CPU
			continue
		}
		if n == 0 || !t.filter.isMember(from.Addr().Unmap()) {
			t.m.dropped.WithLabelValues("stranger").Inc()
			continue
		}
		if err := t.vet.checkPacket(buf[:n]); err != nil {
			t.countRefused(from.String(), err)
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: net.UDPAddrFromAddrPort(from), Timestamp: at}
		select {
		case t.packets <- p:
		case <-t.ctx.Done():
			return
		}
	}
}

// countRefused counts what a member has sent that memberlist does not get. The log is bounded, see logWriter.
func (t *transport) countRefused(remote string, err error) {
	t.m.dropped.WithLabelValues("hostile").Inc()
	_, _ = fmt.Fprintf(t.lines, "[ERR] refused from %s: %v", remote, err)
}

func (t *transport) acceptStreams() {
	for {
		select {
		case t.places <- struct{}{}:
		case <-t.ctx.Done():
			return
		}
		c, err := t.streams.Accept()
		if err != nil {
			return // the listener or the whole port was closed
		}
		s, err := t.trackConn(c)
		if err != nil {
			return
		}
		s.place = true
		select {
		case t.conns <- s:
		case <-t.ctx.Done():
			_ = s.Close()
			return
		}
	}
}

// FinalAdvertiseAddr implements memberlist.Transport: the address in the roster, always.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a := t.cfg.Port.Advertise()
	return a.Addr().AsSlice(), int(a.Port()), nil
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements memberlist.NodeAwareTransport. Nothing is sent to addresses other than members'. That is
// not an error, because memberlist takes a packet that could not be sent for a fault of its own and would never find
// the removed node dead.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip to %q: %w", a.Addr, err)
	}
	if !t.filter.isMember(to.Addr().Unmap()) {
		t.m.dropped.WithLabelValues("to_stranger").Inc()
		return time.Now(), nil
	}
	_, err = t.udp.WriteToUDPAddrPort(b, to)
	return time.Now(), err
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.conns }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport. The peer port dials by id, at the roster's address.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	id, err := t.idOf(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	c, err := t.cfg.Port.Dial(ctx, id, peer.ProtoGossip)
	if err != nil {
		return nil, err
	}
	return t.trackConn(c)
}

func (t *transport) idOf(a memberlist.Address) (node.ID, error) {
	if a.Name != "" {
		return node.ParseID(a.Name)
	}
	for _, e := range t.cfg.Roster.Entries() {
		if e.Addr.String() == a.Addr {
			return e.ID, nil
		}
	}
	return "", fmt.Errorf("gossip with %s: %w", a.Addr, errStranger)
}

// Shutdown implements memberlist.Transport: every socket and stream is closed, every goroutine has ended.
func (t *transport) Shutdown() error {
	t.closeOnce.Do(func() {
		t.cancel()
		_ = t.udp.Close()
		_ = t.streams.Close()
		t.mu.Lock()
		open := t.open
		t.open = nil
		t.mu.Unlock()
		for s := range open {
			_ = peer.Cut(s.Conn)
		}
	})
	t.wg.Wait()
	return nil
}

// stream is a connection that Shutdown can end; memberlist itself lets its streams run into their timeouts. What is
// read from it was looked at.
type stream struct {
	net.Conn
	t     *transport
	place bool // it has one of the places
	read  io.Reader
	once  sync.Once
}

func (t *transport) trackConn(c net.Conn) (*stream, error) {
	s := &stream{Conn: c, t: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		_ = c.Close()
		return nil, errShutdown
	}
	t.open[s] = struct{}{}
	return s, nil
}

// Read reads what the one message of the stream consists of, when it has come and is none that a member cannot have
// sent.
func (s *stream) Read(p []byte) (int, error) {
	if s.read == nil {
		b, err := s.t.vet.readStream(bufio.NewReader(s.Conn))
		if errors.Is(err, errVet) {
			s.t.countRefused(s.RemoteAddr().String(), err)
		}
		if err != nil {
			return 0, err
		}
		s.read = bytes.NewReader(b)
	}
	return s.read.Read(p)
}

// Close closes the stream and forgets it.
func (s *stream) Close() error {
	s.once.Do(func() {
		if s.place {
			<-s.t.places
		}
	})
	s.t.mu.Lock()
	delete(s.t.open, s)
	s.t.mu.Unlock()
	return s.Conn.Close()
}
