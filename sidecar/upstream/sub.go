package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/zmtp"
)

// SubConfig configures a SubClient. Zero values take the defaults named.
type SubConfig struct {
	Addr             string               // host:port of the master's publish_port
	OnMessage        func(parts [][]byte) // every message, in order, from one goroutine; the parts are the callee's
	OnConnect        func()               // subscribed (again): what was published before is lost; same goroutine
	OnDisconnect     func(error)          // the connection broke; same goroutine
	MaxMessage       int64                // bytes of one publication (256 MiB)
	DialTimeout      time.Duration        // TCP connect and ZMTP handshake together (5 s)
	BackoffMin       time.Duration        // 20 ms, doubled up to
	BackoffMax       time.Duration        // 1 s
	Heartbeat        time.Duration        // silence after which the master is asked by PING (10 s)
	HeartbeatTimeout time.Duration        // and the silence after that which means that it stands still (20 s)
	Dial             func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger           *slog.Logger
	Registerer       prometheus.Registerer
}

func (c SubConfig) withDefaults() SubConfig {
	c.MaxMessage = cmp.Or(c.MaxMessage, 256<<20)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, 20*time.Millisecond)
	c.BackoffMax = max(cmp.Or(c.BackoffMax, time.Second), c.BackoffMin)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.HeartbeatTimeout = cmp.Or(c.HeartbeatTimeout, 20*time.Second)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnConnect == nil {
		c.OnConnect = func() {}
	}
	if c.OnDisconnect == nil {
		c.OnDisconnect = func(error) {}
	}
	return c
}

// SubClient keeps one unfiltered subscription to a master's PUB socket alive.
type SubClient struct {
	cfg     SubConfig
	metrics *subMetrics
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	isUp    atomic.Bool
	pause   pause
}

// NewSubClient returns a client that is not connected yet.
func NewSubClient(cfg SubConfig) *SubClient {
	return &SubClient{cfg: cfg.withDefaults(), metrics: newSubMetrics(cfg.Registerer), pause: newPause()}
}

// Open starts connecting and returns at once; a master that is down is not an error. ctx does not end the client.
func (c *SubClient) Open(ctx context.Context) error {
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.wg.Go(func() {
		defer close(c.pause.ended)
		c.keepSubscribed()
	})
	return nil
}

// Close ends the subscription and waits for the last OnMessage.
func (c *SubClient) Close() error {
	if c.cancel != nil {
		c.cancel()
	}
	c.wg.Wait()
	return nil
}

// Up reports whether the subscription is established.
func (c *SubClient) Up() bool { return c.isUp.Load() }

func (c *SubClient) keepSubscribed() {
	pause := backoff.Backoff{Min: c.cfg.BackoffMin, Max: c.cfg.BackoffMax, Jitter: true}
	for c.ctx.Err() == nil {
		z, err := c.pause.takeResumed(), error(nil)
		again := z != nil // taken over: nothing was missed
		if z == nil {
			z, err = c.dialMaster()
		}
		if err == nil {
			began := time.Now()
			err = c.receiveMessages(z, again)
			if errors.Is(err, errHanded) {
				return
			}
			if c.ctx.Err() == nil {
				c.cfg.Logger.Warn("subscription to the salt-master lost", "remote", c.cfg.Addr, "err", err)
			}
			if time.Since(began) > c.cfg.BackoffMax { // else something lets us in to throw us out
				pause.Reset()
				continue
			}
		} else {
			c.cfg.Logger.Debug("no subscription to the salt-master", "remote", c.cfg.Addr, "err", err)
		}
		pause.Wait(c.ctx)
	}
}

func (c *SubClient) dialMaster() (*zmtp.Client, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	raw, err := c.cfg.Dial(ctx, "tcp", c.cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the salt-master: %w", err)
	}
	z, err := zmtp.NewClient(ctx, raw, c.clientOptions())
	if err != nil {
		return nil, fmt.Errorf("subscribe to the salt-master at %s: %w", c.cfg.Addr, err)
	}
	if err := z.Subscribe(nil); err != nil {
		_ = z.Close()
		return nil, fmt.Errorf("subscribe to the salt-master at %s: %w", c.cfg.Addr, err)
	}
	return z, nil
}

// setSilent notes that a master stands still, or works again. The subscription is kept: what it publishes when it works
// again, on behalf of command lines that have waited, must not be missed.
func (c *SubClient) setSilent(is bool) {
	c.isUp.Store(!is)
	if is {
		c.metrics.up.Set(0)
	} else {
		c.metrics.up.Set(1)
	}
}

func (c *SubClient) clientOptions() zmtp.ClientOptions {
	return zmtp.ClientOptions{
		SocketType: "SUB", HandshakeTimeout: c.cfg.DialTimeout,
		Limits:    zmtp.Limits{MaxFrame: c.cfg.MaxMessage, MaxMessage: c.cfg.MaxMessage},
		Heartbeat: c.cfg.Heartbeat, HeartbeatTimeout: c.cfg.HeartbeatTimeout, OnSilent: c.setSilent,
	}
}

// receiveMessages hands on messages until the connection ends, and returns why it did.
func (c *SubClient) receiveMessages(z *zmtp.Client, again bool) (err error) {
	stop := context.AfterFunc(c.ctx, func() { _ = z.Close() })
	defer stop()
	defer z.Close()
	c.isUp.Store(true)
	c.metrics.up.Set(1)
	c.metrics.connects.Inc()
	defer func() {
		c.isUp.Store(false)
		c.metrics.up.Set(0)
		if !errors.Is(err, errHanded) {
			c.cfg.OnDisconnect(err)
		}
	}()
	if !again {
		c.cfg.OnConnect()
	}
	defer c.pause.setReading(nil)
	if c.pause.setReading(z) {
		if err := c.pause.waitPaused(c.ctx, z); err != nil {
			return err
		}
	}
	for {
		parts, err := z.ReadMessage()
		if errors.Is(err, zmtp.ErrInterrupted) {
			if err = c.pause.waitPaused(c.ctx, z); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		c.metrics.messages.Inc()
		c.cfg.OnMessage(parts)
	}
}
