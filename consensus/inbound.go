package consensus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// inbound is the receiving side of raft's transport, in the library's format. The library's own reads messages without
// a bound, and a snapshot in raft's main loop, for as long as the sender likes to take; neither knows who sent it. Here
// a message has a size and a time, a snapshot is on the disk and has been read before raft hears of it, and validateRPC
// has accepted it.
type inbound struct {
	inboundConfig
	rpcs chan raft.RPC
	beat atomic.Pointer[func(raft.RPC)]

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	senders map[node.ID]*sender
	conns   map[net.Conn]struct{}
}

type inboundConfig struct {
	ln       net.Listener
	remote   func(net.Conn) (node.ID, bool)
	position func() position
	dir      string        // for snapshots on their way
	timeout  time.Duration // for the rest of a message that has begun
	log      *slog.Logger
	m        *metrics
}

// Bounds for each member.
const (
	maxInbound   = 16        // connections; raft has three for replies and a few more now and then
	smallCommand = 256 << 10 // bytes; only one message at a time may be larger
	restoreRate  = 64 << 10  // bytes a second at which a snapshot has to come; the sender gives up earlier
)

// Kinds of messages: the first byte of each.
const (
	kindAppend = iota
	kindVote
	kindSnapshot
	kindTimeout
	kindPreVote
)

var errBusy = errors.New("too many bytes of this member at once")

// sender is what one member has open.
type sender struct {
	conns    int
	large    sync.Mutex // held while a large message is read
	restores sync.Mutex // held while a snapshot is read
}

func newInbound(c inboundConfig) *inbound {
	in := &inbound{inboundConfig: c, rpcs: make(chan raft.RPC), senders: map[node.ID]*sender{},
		conns: map[net.Conn]struct{}{}}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	in.wg.Go(in.acceptConnections)
	return in
}

// close ends every connection and waits for those that serve them.
func (in *inbound) close() {
	in.cancel()
	_ = in.ln.Close()
	in.mu.Lock()
	for c := range in.conns {
		in.wg.Go(func() { _ = c.Close() }) // a TLS connection may take seconds to say goodbye
	}
	in.mu.Unlock()
	in.wg.Wait()
}

func (in *inbound) acceptConnections() {
	const first, most = 5 * time.Millisecond, time.Second
	pause := backoff.Backoff{Min: first, Max: most}
	for {
		c, err := in.ln.Accept()
		switch {
		case err == nil:
			pause.Reset()
			in.admitConnection(c)
			continue
		case in.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		}
		in.log.Warn("accepting raft connections fails", "err", err)
		if !pause.Wait(in.ctx) {
			return
		}
	}
}

// admitConnection serves a connection, unless its member has enough of them.
func (in *inbound) admitConnection(c net.Conn) {
	from, _ := in.remote(c)
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[from]
	if s == nil {
		s = &sender{}
		if from != "" {
			in.senders[from] = s
		}
	}
	if in.ctx.Err() != nil || s.conns >= maxInbound {
		in.m.countRefusal("connections")
		in.wg.Go(func() { _ = c.Close() })
		return
	}
	s.conns++
	in.conns[c] = struct{}{}
	in.wg.Go(func() {
		if err := in.serveMessages(c, from, s); in.ctx.Err() == nil && !errors.Is(err, io.EOF) {
			in.log.Debug("raft connection ends", "node", from, "err", err)
		}
		_ = c.Close()
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.conns, c)
		if s.conns--; s.conns == 0 {
			delete(in.senders, from)
		}
	})
}

// serveMessages answers one message after the other, and returns why it does not any more.
func (in *inbound) serveMessages(c net.Conn, from node.ID, s *sender) error {
	r, w := &boundedReader{Reader: bufio.NewReader(c)}, bufio.NewWriter(c)
	dec, enc := codec.NewDecoder(r, &codec.MsgpackHandle{}), codec.NewEncoder(w, &codec.MsgpackHandle{})
	for {
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		kind, err := r.Reader.ReadByte()
		if err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(in.timeout)); err != nil {
			return err
		}
		cmd, err := readCommand(kind, dec, r, s)
		if err != nil {
			return err
		}
		answer, err := in.passToRaft(c, r.Reader, cmd, from, s)
		if err != nil {
			return err
		}
		text := ""
		if answer.Error != nil {
			text = answer.Error.Error()
		}
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(in.timeout)), enc.Encode(text), enc.Encode(answer.Response),
			w.Flush()); err != nil {
			return err
		}
	}
}

// readCommand reads the rest of a message.
func readCommand(kind byte, dec *codec.Decoder, r *boundedReader, s *sender) (cmd any, err error) {
	switch kind {
	case kindAppend:
		cmd = &raft.AppendEntriesRequest{}
	case kindVote:
		cmd = &raft.RequestVoteRequest{}
	case kindSnapshot:
		cmd = &raft.InstallSnapshotRequest{}
	case kindTimeout:
		cmd = &raft.TimeoutNowRequest{}
	case kindPreVote:
		cmd = &raft.RequestPreVoteRequest{}
	default:
		return nil, fmt.Errorf("%w: a message of kind %d", errInvalidMessage, kind)
	}
	r.startMessage(smallCommand, maxCommand, &s.large)
	defer r.endMessage()
	return cmd, dec.Decode(cmd)
}

// passToRaft gives a message to raft and waits for the answer. An error ends the connection.
func (in *inbound) passToRaft(c net.Conn, r io.Reader, cmd any, from node.ID, s *sender) (raft.RPCResponse, error) {
	if err := validateRPC(cmd, from, in.position()); err != nil {
		in.refuseMessage(from, "doubt", err)
		return raft.RPCResponse{}, err
	}
	answers := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: cmd, RespChan: answers}
	if snap, ok := cmd.(*raft.InstallSnapshotRequest); ok {
		f, err := in.receiveSnapshot(c, r, snap, s)
		if err != nil {
			in.refuseMessage(from, "snapshot", err)
			return raft.RPCResponse{}, err
		}
		defer f.Close()
		rpc.Reader = io.LimitReader(f, snap.Size)
	}
	if beat := in.beat.Load(); beat != nil && isHeartbeat(cmd) {
		(*beat)(rpc)
	} else {
		select {
		case in.rpcs <- rpc:
		case <-in.ctx.Done():
			return raft.RPCResponse{}, net.ErrClosed
		}
	}
	select {
	case a := <-answers:
		return a, nil
	case <-in.ctx.Done():
		return raft.RPCResponse{}, net.ErrClosed
	}
}

func (in *inbound) refuseMessage(from node.ID, reason string, err error) {
	if in.ctx.Err() != nil {
		return
	}
	in.m.countRefusal(reason)
	in.log.Warn("message of a member to raft refused", "node", from, "err", err)
}

// isHeartbeat tells what the library tells from other messages of a leader: raft answers it beside its main loop.
func isHeartbeat(cmd any) bool {
	a, ok := cmd.(*raft.AppendEntriesRequest)
	return ok && a.Term != 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 &&
		a.LeaderCommitIndex == 0
}

// receiveSnapshot takes a snapshot to the disk and reads it there: what raft gets is whole, and is one.
func (in *inbound) receiveSnapshot(c net.Conn, r io.Reader, req *raft.InstallSnapshotRequest,
	s *sender) (_ *os.File, err error) {
	if !s.restores.TryLock() {
		return nil, errBusy
	}
	defer s.restores.Unlock()
	sending := time.Duration(req.Size/restoreRate) * time.Second
	if err := c.SetReadDeadline(time.Now().Add(in.timeout + sending)); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(in.dir, "incoming-")
	if err != nil {
		return nil, fmt.Errorf("receive a snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("receive a snapshot: %w", err), f.Close())
		}
	}()
	if err := os.Remove(f.Name()); err != nil { // it goes with its last user
		return nil, err
	}
	if _, err := io.CopyN(f, r, req.Size); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := state.ReadSnapshot(f)
	if err != nil {
		return nil, err
	}
	if index := content.View().Index(); index > req.LastLogIndex { // what comes later would not be applied
		return nil, fmt.Errorf("%w: a state of entry %d in a snapshot up to %d", errInvalidMessage, index, req.LastLogIndex)
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// boundedReader reads one message: so much freely, the rest up to a bound while a lock is held.
type boundedReader struct {
	*bufio.Reader
	left, more int
	lock       *sync.Mutex
	held       bool
}

func (b *boundedReader) startMessage(small, most int, lock *sync.Mutex) {
	b.left, b.more, b.lock = small, most-small, lock
}

func (b *boundedReader) endMessage() {
	if b.held {
		b.lock.Unlock()
	}
	b.held = false
}

// spendBytes says how many of n bytes may be read now.
func (b *boundedReader) spendBytes(n int) (int, error) {
	if b.left == 0 && b.more > 0 {
		if !b.lock.TryLock() {
			return 0, errBusy
		}
		b.held, b.left, b.more = true, b.more, 0
	}
	if b.left == 0 {
		return 0, fmt.Errorf("%w: a message of more than %d bytes", errInvalidMessage, maxCommand)
	}
	return min(n, b.left), nil
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.spendBytes(len(p))
	if err != nil {
		return 0, err
	}
	n, err = b.Reader.Read(p[:n])
	b.left -= n
	return n, err
}

// ReadByte implements io.ByteReader.
func (b *boundedReader) ReadByte() (byte, error) {
	if _, err := b.spendBytes(1); err != nil {
		return 0, err
	}
	c, err := b.Reader.ReadByte()
	if err == nil {
		b.left--
	}
	return c, err
}

// UnreadByte implements io.ByteScanner.
func (b *boundedReader) UnreadByte() error {
	err := b.Reader.UnreadByte()
	if err == nil {
		b.left++
	}
	return err
}
