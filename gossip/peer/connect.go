package peer

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// connectAgain is how long an attempt to connect may take before another one is made beside it. The kernel repeats
	// what was lost after one, two and four seconds; a link that is back should be noticed sooner.
	connectAgain = 300 * time.Millisecond
	// unackedMax is how long what was written for raft may stay unacknowledged by the other kernel. A connection whose
	// packets are lost is replaced then; the kernel's next repetition may be seconds after the link is back. A reader that
	// pauses for as long with full buffers also loses its connection, so whoever writes much lifts the limit (consensus,
	// for snapshots).
	unackedMax = time.Second
)

// connectTCP makes a TCP connection for a protocol.
func connectTCP(ctx context.Context, addr netip.AddrPort, proto string) (net.Conn, error) {
	d := net.Dialer{}
	if proto == ProtoRaft {
		d.Control = limitUnacked
	}
	return raceDials(ctx, func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr.String()) })
}

// raceDials starts an attempt every connectAgain until one succeeds or fails, or ctx ends. It returns when all have
// ended.
func raceDials(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	var attempts sync.WaitGroup
	defer attempts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan outcome)
	attempt := func() {
		c, err := dial(ctx)
		select {
		case done <- outcome{c, err}:
		case <-ctx.Done():
			if err == nil {
				_ = c.Close()
			}
		}
	}
	again := time.NewTicker(connectAgain)
	defer again.Stop()
	attempts.Go(attempt)
	for {
		select {
		case o := <-done:
			return o.conn, o.err
		case <-again.C:
			attempts.Go(attempt)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// limitUnacked sets TCP_USER_TIMEOUT.
func limitUnacked(_, _ string, c syscall.RawConn) error {
	var err error
	if failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unackedMax.Milliseconds()))
	}); failed != nil {
		return failed
	}
	return err
}
