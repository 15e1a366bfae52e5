package herd

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// Dialer makes a minion's connections.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

const (
	dialWithin = 10 * time.Second
	readBuffer = 2 << 10 // minions are many, what they hear is short
)

// socketType names what a connection plays.
const (
	socketReq = "REQ"
	socketSub = "SUB"
)

// connect dials and shakes hands.
func connect(ctx context.Context, dial Dialer, addr, socket string) (*zmtp.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return zmtp.NewClient(ctx, c, zmtp.ClientOptions{SocketType: socket, ReadBuffer: readBuffer})
}

// backoff is libzmq's: the first pause after a connection broke, doubled with every attempt that fails, up to a bound
// (ZMQ_RECONNECT_IVL, ZMQ_RECONNECT_IVL_MAX).
type backoff struct{ first, max, last time.Duration }

func (b *backoff) next() time.Duration {
	switch {
	case b.last == 0:
		b.last = b.first
	case b.last > b.max/2:
		b.last = b.max
	default:
		b.last *= 2
	}
	b.last = min(b.last, b.max)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }

// pause waits and says whether ctx is still active.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// between draws a duration out of [low, high].
func between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(rand.Int64N(int64(high-low)+1))
}
