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

// between draws a duration out of [low, high].
func between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(rand.Int64N(int64(high-low)+1))
}
