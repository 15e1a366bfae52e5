package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// maxPool is how many idle raft connections per peer are kept.
const maxPool = 3

// transport is the library's for what this node asks others, and inbound for what they ask this one. Raft addresses are
// node ids.
type transport struct {
	*raft.NetworkTransport
	beats *raft.NetworkTransport // for heartbeats: it gives up sooner, so that a link that is back is noticed
	snaps *raft.NetworkTransport // for snapshots: its connections bear a receiver that stands still for a while
	reach *reach
	hangs func() bool // this node's disk does
	in    *inbound
}

var _ raft.WithPreVote = (*transport)(nil)

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.in.rpcs }

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(beat func(raft.RPC)) { t.in.beat.Store(&beat) }

// Close implements raft.WithClose. It ends every connection.
func (t *transport) Close() error {
	err := errors.Join(t.NetworkTransport.Close(), t.beats.Close(), t.snaps.Close())
	t.in.close()
	return err
}

// AppendEntries implements raft.Transport, as the following do: the term in an answer may become raft's own. It returns
// an error only when the request is of no use any more, see reach.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) error {
	if isHeartbeat(req) {
		err := errDiskHangs
		if !t.hangs() {
			err = t.validateAnswer(t.beats.AppendEntries(id, to, req, resp), &resp.Term)
		}
		if err == nil {
			t.reach.noteAnswered(id)
		} else {
			t.reach.noteFailed(id)
		}
		return err
	}
	pause := backoff.Backoff{Min: retryFirst, Max: appendRetryMax}
	for {
		*resp = raft.AppendEntriesResponse{}
		err := errDiskHangs
		if !t.hangs() {
			err = t.validateAnswer(t.NetworkTransport.AppendEntries(id, to, req, resp), &resp.Term)
		}
		if err == nil {
			t.replaceBackoff(id, req, resp)
			return nil
		}
		if !t.reach.waitHeartbeat(t.in.ctx, id, req.Term, pause.Next()) {
			return err
		}
	}
}

// replaceBackoff replaces raft's backoff for a member that could not store entries, on a full disk say: the member
// would lack them for seconds after it could store them again.
func (t *transport) replaceBackoff(id raft.ServerID, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	if resp.Success || resp.NoRetryBackoff || resp.Term > req.Term {
		return
	}
	resp.NoRetryBackoff = t.reach.pauseLeading(t.in.ctx, id, req.Term, rejectedPause)
}

// InstallSnapshot implements raft.Transport. Raft counts the failure, but sends the next snapshot when the member
// answers heartbeats again.
func (t *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := t.validateAnswer(t.snaps.InstallSnapshot(id, to, req, resp, data), &resp.Term)
	if err != nil {
		t.reach.waitHeartbeat(t.in.ctx, id, req.Term, retryFirst)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse) error {
	return t.validateAnswer(t.NetworkTransport.RequestVote(id, to, req, resp), &resp.Term)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse) error {
	return t.validateAnswer(t.NetworkTransport.RequestPreVote(id, to, req, resp), &resp.Term)
}

// validateAnswer makes an error of an answer that is not believed.
func (t *transport) validateAnswer(err error, term *uint64) error {
	if err == nil {
		err = validateTerm(*term, t.in.position())
	}
	if err != nil {
		*term = 0 // raft looks at it whatever the error says
	}
	return err
}

// stream lets raft's transport use the Port to ask others.
//
// It keeps track of the connections, because raft's transport does not end the
// idle ones when it is closed.
type stream struct {
	port      Port
	self      node.ID
	unlimited bool // connections are not limited by Port, see clearUserTimeout

	mu     sync.Mutex
	conns  map[*streamConn]struct{}
	closed chan struct{}
}

func newStream(port Port, self node.ID, unlimited bool) *stream {
	return &stream{port: port, self: self, unlimited: unlimited, conns: map[*streamConn]struct{}{},
		closed: make(chan struct{})}
}

// Addr is what raft takes for its own address.
func (s *stream) Addr() net.Addr { return nodeAddr(s.self) }

// Accept implements net.Listener: see inbound for those who ask.
func (s *stream) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

// Dial implements raft.StreamLayer.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.port.Dial(ctx, node.ID(to), Proto)
	if err != nil {
		return nil, err
	}
	if s.unlimited {
		if err := clearUserTimeout(c); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", to, err), c.Close())
		}
	}
	return s.trackConn(c)
}

// clearUserTimeout takes TCP_USER_TIMEOUT off a connection. With it the kernel ends one whose receiver does not read
// for so long, as the disk of a member may cause that stores a snapshot while it comes: the snapshot would begin anew
// each time, and the member never catch up.
func clearUserTimeout(c net.Conn) error {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // below TLS
		c = t.NetConn()
	}
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if errors.Is(err, errors.ErrUnsupported) { // it goes through another member, without a limit
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
	})
	return errors.Join(err, failed)
}

// Close ends every connection.
func (s *stream) Close() error {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.conns))
	clear(s.conns)
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup // a TLS connection may take seconds to say goodbye
	for _, c := range open {
		wg.Go(func() { _ = c.Conn.Close() })
	}
	wg.Wait()
	return nil
}

func (s *stream) trackConn(c net.Conn) (net.Conn, error) {
	t := &streamConn{Conn: c, s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	default:
	}
	s.conns[t] = struct{}{}
	return t, nil
}

// maxAnswer bounds what is read for what was written, in bytes: the library reads answers without a bound.
const maxAnswer = 64 << 10

type streamConn struct {
	net.Conn
	s    *stream
	read int // since the last Write
}

// Read implements net.Conn.
func (c *streamConn) Read(p []byte) (int, error) {
	if c.read >= maxAnswer {
		return 0, fmt.Errorf("%w: an answer of more than %d bytes", errInvalidMessage, maxAnswer)
	}
	n, err := c.Conn.Read(p[:min(len(p), maxAnswer-c.read)])
	c.read += n
	return n, err
}

// Write implements net.Conn.
func (c *streamConn) Write(p []byte) (int, error) {
	c.read = 0
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *streamConn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}

type nodeAddr node.ID

func (nodeAddr) Network() string  { return Proto }
func (a nodeAddr) String() string { return string(a) }

func addrOf(id node.ID) raft.ServerAddress { return raft.ServerAddress(id) }
