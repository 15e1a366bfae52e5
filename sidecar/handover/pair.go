package handover

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kind tells messages apart; what they mean is agreed on above this package.
type Kind uint8

// Message is one thing that was said. Its descriptors are the receiver's.
type Message struct {
	Kind        Kind
	Payload     []byte
	Descriptors []int
}

const (
	// maxBatch is how many descriptors go with one datagram; the kernel's limit is 253.
	maxBatch = 250
	// maxInline is the largest payload sent in a datagram of its own.
	maxInline = 32 << 10
	// maxParcel bounds a payload altogether.
	maxParcel = 1 << 30
	// maxDescriptors bounds those of one message.
	maxDescriptors = 1 << 18

	headerSize = 1 + 1 + 8 + 8 // kind, flags, length of the payload, number of descriptors
	flagParcel = 1
	flagMore   = 2
)

var (
	// ErrGone says that the process at the other end has ended.
	ErrGone = errors.New("the other process has ended")
	// ErrMessage says that a message was malformed.
	ErrMessage = errors.New("malformed message of the other process")
)

// Conn is one end of the pair. Send is safe for concurrent use; one goroutine may receive.
type Conn struct {
	c  *net.UnixConn
	mu sync.Mutex
}

// Pair makes the two ends: ours, and the file which the new process inherits.
func Pair() (ours *Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "handover")
	if ours, err = Inherit(uintptr(fds[0])); err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// Inherit makes a Conn of an inherited descriptor, which is the Conn's from now on.
func Inherit(fd uintptr) (*Conn, error) {
	f := os.NewFile(fd, "handover")
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("inherited socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("inherited socket is not a unix socket")
	}
	return &Conn{c: u}, nil
}

// Close closes this end; the other one sees it.
func (c *Conn) Close() error { return c.c.Close() }

// Send says something. It takes as long as the receiver does, until ctx ends.
func (c *Conn) Send(ctx context.Context, k Kind, payload []byte, descriptors ...int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := c.boundBy(ctx, c.c.SetWriteDeadline)
	defer stop()
	if err := c.sendMessage(k, payload, descriptors); err != nil {
		return fmt.Errorf("write to the other process: %w", endError(ctx, err))
	}
	return nil
}

func (c *Conn) sendMessage(k Kind, payload []byte, descriptors []int) error {
	head := make([]byte, headerSize, headerSize+maxInline)
	head[0] = byte(k)
	binary.BigEndian.PutUint64(head[2:], uint64(len(payload)))
	binary.BigEndian.PutUint64(head[10:], uint64(len(descriptors)))
	if len(payload) > maxInline {
		parcel, err := packMemory(payload)
		if err != nil {
			return err
		}
		defer parcel.Close()
		head[1] = flagParcel
		if err := c.sendDatagram(head, int(parcel.Fd())); err != nil {
			return err
		}
	} else {
		n := min(len(descriptors), maxBatch)
		if err := c.sendDatagram(append(head, payload...), descriptors[:n]...); err != nil {
			return err
		}
		descriptors = descriptors[n:]
	}
	for len(descriptors) > 0 {
		n := min(len(descriptors), maxBatch)
		if err := c.sendDatagram([]byte{byte(k), flagMore}, descriptors[:n]...); err != nil {
			return err
		}
		descriptors = descriptors[n:]
	}
	return nil
}

func (c *Conn) sendDatagram(b []byte, descriptors ...int) error {
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	_, _, err := c.c.WriteMsgUnix(b, rights, nil)
	return err
}

// packMemory puts a payload into a memory file.
func packMemory(payload []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("saltclusterd-state", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "state")
	if _, err := f.Write(payload); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("fill a memory file: %w", err)
	}
	return f, nil
}

// Receive waits for the next message, until ctx ends.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	stop := c.boundBy(ctx, c.c.SetReadDeadline)
	defer stop()
	m, err := c.receiveMessage()
	if err != nil {
		m.Close()
		return Message{}, fmt.Errorf("read from the other process: %w", endError(ctx, err))
	}
	return m, nil
}

func (c *Conn) receiveMessage() (m Message, err error) {
	b, fds, err := c.readDatagram()
	m.Descriptors = fds
	if err != nil {
		return m, err
	}
	if len(b) < headerSize || b[1]&flagMore != 0 {
		return m, ErrMessage
	}
	m.Kind = Kind(b[0])
	size, count := binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[10:])
	if size > maxParcel || count > maxDescriptors {
		return m, ErrMessage
	}
	if b[1]&flagParcel != 0 {
		if len(fds) != 1 {
			return m, ErrMessage
		}
		m.Descriptors = nil
		if m.Payload, err = unpackMemory(fds[0], int(size)); err != nil {
			return m, err
		}
	} else if m.Payload = b[headerSize:]; uint64(len(m.Payload)) != size {
		return m, ErrMessage
	}
	for uint64(len(m.Descriptors)) < count {
		b, fds, err := c.readDatagram()
		m.Descriptors = append(m.Descriptors, fds...)
		if err != nil {
			return m, err
		}
		if len(b) != 2 || Kind(b[0]) != m.Kind || b[1] != flagMore || len(fds) == 0 {
			return m, ErrMessage
		}
	}
	if uint64(len(m.Descriptors)) != count {
		return m, ErrMessage
	}
	return m, nil
}

// readDatagram takes one datagram and its descriptors.
func (c *Conn) readDatagram() (b []byte, fds []int, err error) {
	room := make([]byte, headerSize+maxInline)
	rights := make([]byte, unix.CmsgSpace(4*maxBatch))
	n, nr, flags, _, err := c.c.ReadMsgUnix(room, rights)
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	for i := range messages {
		got, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, fds, fmt.Errorf("%w: %w", ErrMessage, err)
		}
		fds = append(fds, got...)
	}
	switch {
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return nil, fds, fmt.Errorf("%w: cut short", ErrMessage)
	case n == 0:
		return nil, fds, io.EOF
	}
	return room[:n], fds, nil
}

func unpackMemory(fd, size int) ([]byte, error) {
	f := os.NewFile(uintptr(fd), "state")
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("parcel: %w", err)
	}
	if info.Size() != int64(size) {
		return nil, fmt.Errorf("%w: parcel of %d bytes instead of %d", ErrMessage, info.Size(), size)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("parcel: %w", err)
	}
	return b, nil
}

// Close closes the descriptors of a message that is not wanted.
func (m Message) Close() {
	for _, fd := range m.Descriptors {
		_ = unix.Close(fd)
	}
}

// boundBy makes ctx end what is waited for.
func (c *Conn) boundBy(ctx context.Context, set func(time.Time) error) (stop func()) {
	deadline, _ := ctx.Deadline()
	_ = set(deadline)
	cancel := context.AfterFunc(ctx, func() { _ = set(time.Unix(1, 0)) })
	return func() { cancel() }
}

// endError turns what the kernel says into what has happened.
func endError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err,
		net.ErrClosed):
		return ErrGone
	}
	return err
}
