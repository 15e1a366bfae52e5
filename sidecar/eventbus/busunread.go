package eventbus

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Events written to the master's socket wait there until its publisher reads them, which takes long when the master is
// stopped or hangs: a hundred KiB and more whose senders have been told that they were fired. When such a master ends
// the kernel discards them, and says that it did (ECONNRESET; a plain end when everything was read). Then they are
// fired again at the next master. Events that the publisher had read are the master's, and are lost with it as behind a
// stock master's workers.
//
// Which events were not read shows in what the socket still holds, piece by piece. A piece is one buffer of the kernel.
// There is a look before each write, and one now and then while something has not been read. Of a master that stands
// still it shows all there is to know. Of one that is killed while it reads, what it read after the last look is fired
// again. That would not happen if each piece waited for the one before, which makes each event half as dear again.
const (
	busPiece  = 32 << 10              // bytes of a piece: what the kernel keeps whole, and a master reads at once
	busGlance = 20 * time.Millisecond // how often to look while something has not been read
)

// piece is events that were written at once and that the master has perhaps not read.
type piece struct {
	events []queuedEvent
	size   int // how much of the socket's room it takes, or less
}

// pull is the connection on which events are written, and the room for their text.
type pull struct {
	c      net.Conn
	text   []byte
	unread []piece       // in the socket
	again  []queuedEvent // which a master that has gone had not read
}

func (p *pull) close() {
	if p.c != nil {
		_ = p.c.Close()
		p.c, p.unread = nil, nil
	}
}

// checkUnread looks what the master has read. An error says that it has gone; the connection is closed then, and what
// it had not read waits to be fired again.
func (p *pull) checkUnread() (held int, err error) {
	held, err = peekSocket(p.c)
	if err == nil {
		p.dropRead(held)
		return held, nil
	}
	p.closeEnded(err)
	return 0, err
}

// dropRead drops what has been read: all but the latest pieces, which are what the socket still holds.
func (p *pull) dropRead(held int) {
	for i := len(p.unread) - 1; i >= 0; i-- {
		if held <= 0 {
			p.unread = p.unread[i+1:]
			break
		}
		held -= p.unread[i].size
	}
	if len(p.unread) == 0 {
		p.unread = nil
	}
}

// closeEnded closes a connection whose master has gone.
func (p *pull) closeEnded(why error) {
	if errors.Is(why, unix.ECONNRESET) {
		var lost []queuedEvent
		for _, x := range p.unread {
			lost = append(lost, x.events...)
		}
		p.again = append(lost, p.again...)
	}
	p.close()
}

// noteFailed says how many events of a write that failed are not to be written again. A master that stands still and
// has taken nothing of it keeps its connection: it will read what is in there.
func (p *pull) noteFailed(events []queuedEvent, f framing, size int, err error) (n int) {
	_, gone := peekSocket(p.c)
	if errors.Is(err, unix.ECONNRESET) { // which is told once
		gone = err
	}
	switch {
	case gone == nil && size == 0 && errors.Is(err, os.ErrDeadlineExceeded):
		return 0
	case errors.Is(gone, unix.ECONNRESET):
		n = 0
	default:
		n = countWritten(events, f, size)
	}
	p.closeEnded(gone)
	return n
}

// noteWritten remembers events until the master has read them. An error says that it has gone meanwhile; n events are
// not to be written again.
func (p *pull) noteWritten(events []queuedEvent, size, before int) (n int, err error) {
	after, gone := peekSocket(p.c)
	switch {
	case errors.Is(gone, unix.ECONNRESET): // the last piece is among what it has not read
		p.closeEnded(gone)
		return 0, gone
	case gone != nil:
		p.closeEnded(gone)
		return len(events), gone
	case after == 0:
		p.unread = nil
	default:
		p.unread = append(p.unread, piece{slices.Clone(events), max(size, after-before)})
	}
	return len(events), nil
}

// peekSocket asks the kernel how much of a unix socket's room holds what its other end has not read, and whether that
// is gone: io.EOF, it had read everything; ECONNRESET, it had not, which the kernel tells once. held is asked first,
// and counts only if the other end is still there afterwards.
func peekSocket(c net.Conn) (held int, gone error) {
	s, ok := c.(*net.UnixConn)
	if !ok {
		return 0, nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = raw.Control(func(fd uintptr) {
		held, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case n == 0 && err == nil:
			gone = io.EOF
		case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			gone = err
		}
	})
	return held, errors.Join(err, gone)
}
