package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/zmtp"
)

// ReqConfig configures a ReqClient. Zero values take the defaults named.
type ReqConfig struct {
	Addr             string        // host:port of the master's ret_port
	MaxConns         int           // connections at most (64)
	MaxQueue         int           // calls waiting for a connection at most (4096)
	PerSender        int           // calls of one sender under way at a time; others of his wait (any number)
	PerWaiter        int           // the same of a sender whose name begins with Waiting (any number)
	MaxRequest       int64         // bytes of a request body (256 MiB)
	MaxReply         int64         // bytes of a reply body (256 MiB)
	Timeout          time.Duration // a call without a nearer deadline ends after it, unless it is Long (60 s)
	DialTimeout      time.Duration // TCP connect and ZMTP handshake together (5 s)
	DrainTimeout     time.Duration // how long a given-up request's connection waits for the stale reply (2 s)
	StaleTimeout     time.Duration // and how long some wait all the same, where a limit counts them (5 min)
	IdleTimeout      time.Duration // connections above MinIdle that idle for so long are closed (60 s)
	MinIdle          int           // connections kept however long they idle (1)
	BackoffMin       time.Duration // pause after the first failed connect (50 ms), doubled up to
	BackoffMax       time.Duration // this one (1 s)
	Heartbeat        time.Duration // silence after which the master is asked by PING (10 s)
	HeartbeatTimeout time.Duration // and the silence after that which means that it stands still (20 s)
	Probe            []byte        // a request that any worker of the master answers at once; nil: none is sent
	ProbeAfter       time.Duration // time without any reply after which one is sent, while something is asked (1 s)
	Workers          int           // of the master, that take requests (1)
	StuckAfter       time.Duration // time without any reply, though asked, after which no worker works (15 s)
	BusyAtMost       time.Duration // the same while each worker may be busy with a call that is Long or Waiting (3 min)
	Dial             func(ctx context.Context, network, addr string) (net.Conn, error)
	OnUp             func() // like ReqClient.OnUp, set before Open
	Logger           *slog.Logger
	Registerer       prometheus.Registerer
}

func (c ReqConfig) withDefaults() ReqConfig {
	c.MaxConns = cmp.Or(c.MaxConns, 64)
	c.MaxQueue = cmp.Or(c.MaxQueue, 4096)
	c.MaxRequest = cmp.Or(c.MaxRequest, 256<<20)
	c.MaxReply = cmp.Or(c.MaxReply, 256<<20)
	c.Timeout = cmp.Or(c.Timeout, 60*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 2*time.Second)
	c.StaleTimeout = cmp.Or(c.StaleTimeout, 5*time.Minute)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 60*time.Second)
	c.MinIdle = min(cmp.Or(c.MinIdle, 1), c.MaxConns)
	c.BackoffMin = cmp.Or(c.BackoffMin, 50*time.Millisecond)
	c.BackoffMax = max(cmp.Or(c.BackoffMax, time.Second), c.BackoffMin)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.ProbeAfter = cmp.Or(c.ProbeAfter, time.Second)
	c.Workers = max(c.Workers, 1)
	c.StuckAfter = cmp.Or(c.StuckAfter, 15*time.Second)
	c.BusyAtMost = max(cmp.Or(c.BusyAtMost, 3*time.Minute), c.StuckAfter)
	c.HeartbeatTimeout = cmp.Or(c.HeartbeatTimeout, 20*time.Second)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// firstGrab lets most replies arrive in the memory they stay in: a chunk of a file is 1 MiB, and growing towards it
// would leave as much behind again.
const firstGrab = 2 << 20

func (c ReqConfig) clientOptions() zmtp.ClientOptions {
	return zmtp.ClientOptions{
		SocketType: "REQ", HandshakeTimeout: c.DialTimeout,
		Limits:    zmtp.Limits{MaxFrame: c.MaxReply, MaxMessage: c.MaxReply, MaxParts: 4},
		Heartbeat: c.Heartbeat, HeartbeatTimeout: c.HeartbeatTimeout, FirstGrab: firstGrab,
	}
}
