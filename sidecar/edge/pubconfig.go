package edge

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/zmtp"
)

// Publication is one message to all subscribers. Its slices are shared by
// the edge and must not be changed afterwards.
type Publication struct {
	Body []byte // for subscribers of the current generation
	Prev []byte // the same for those still on the previous one; nil: as Body
	// Topics under which filtering subscribers get it as [topic, body], by
	// prefix as in libzmq, once each; nil means Salt's "broadcast".
	Topics    []string
	TopicOnly bool // not for unfiltered subscribers
}

// PubConfig configures a PubEdge. Zero fields take the default named.
type PubConfig struct {
	Addrs  []string // host:port to listen on
	Limits zmtp.Limits
	// Proxies are load balancers: their connections must begin with a PROXY
	// header (package proxyproto), and are those of the address it names.
	Proxies []netip.Prefix
	// Listen gives the listeners; nil: they are made.
	Listen func(ctx context.Context, network, addr string) (net.Listener, error)

	Served Served
	// Identify returns the minion that a subscriber with Salt's tcp transport names itself; false: it proves nothing. nil:
	// none is known.
	Identify func(said []byte) (id string, ok bool)
	// Targeted tells whether such a subscriber gets nothing that is for other minions; nil: it does not.
	Targeted func() bool

	MaxConns         int // 65536
	MaxConnsPerAddr  int // 0: none. Behind a load balancer that is not in Proxies all peers share its address.
	MaxSubscriptions int // per connection. 64
	MaxTopic         int // bytes in one subscribed topic. 255

	// A subscriber whose socket is full is cut when it is further behind
	// than this. The memory is shared: all of them together hold no more than
	// about one QueueBytes per generation.
	QueueMessages int   // 1000
	QueueBytes    int64 // 64 MiB

	HandshakeTimeout time.Duration // from accept to READY. 10 s
	Heartbeat        time.Duration // a PING to every subscriber, give or take a fifth. 10 s
	HeartbeatTimeout time.Duration // for anything to come back, and for a full socket to take anything. 30 s

	// SignInTime is how long a stock minion may need to sign in: it repeats a request after as long. One of Salt 3008
	// whose connection ends while it signs in because of a publication never hears anything again. So a rotation waits
	// until connections are this old (a load balancer that has just seen this node fail may still cut them), and stands
	// still during a drain that is over sooner; neither holds for one with Rotation.Hold. A drain cuts no sooner than
	// this after a publication under a new key. 5 s
	SignInTime time.Duration

	Shards     int // workers. One per CPU, at most 16
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func (c PubConfig) withDefaults() (PubConfig, error) {
	if len(c.Addrs) == 0 {
		return c, errors.New("pub edge: no address to listen on")
	}
	if c.Limits.MaxFrame <= 0 { // subscribers only send subscriptions
		c.Limits.MaxFrame = 4 << 10
	}
	if c.Limits.MaxMessage <= 0 {
		c.Limits.MaxMessage = 4 << 10
	}
	if c.Limits.MaxParts <= 0 {
		c.Limits.MaxParts = 1
	}
	c.Limits = c.Limits.WithDefaults()
	orInt(&c.MaxConns, 65536)
	orInt(&c.MaxSubscriptions, 64)
	orInt(&c.MaxTopic, 255)
	orInt(&c.QueueMessages, 1000)
	orInt(&c.QueueBytes, 64<<20)
	orInt(&c.HandshakeTimeout, 10*time.Second)
	orInt(&c.Heartbeat, 10*time.Second)
	orInt(&c.HeartbeatTimeout, 30*time.Second)
	orInt(&c.SignInTime, 5*time.Second)
	orInt(&c.Shards, min(runtime.GOMAXPROCS(0), 16))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// PubStats is what a PubEdge is doing and has done.
type PubStats struct {
	Conns       int    // connections, those in handshake included
	Subscribers int    // connections with at least one subscription
	Blocked     int    // subscribers whose socket is full
	OnPrevious  int    // subscribers not yet moved to the current generation
	Cut         uint64 // connections cut for being slow, stalled or silent
	Published   uint64 // publications
	Delivered   uint64 // publications × subscribers that got them
	Generation  uint64 // number of Rotate calls
}
