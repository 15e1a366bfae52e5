package upstream

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/zmtp"
	"saltclusterd/signal"
)

// maxDialing bounds the connects under way at once: a master that accepts slowly is not helped by sixty of them.
const maxDialing = 8

// keepIdle holds MinIdle connections open, however often they are lost, and closes those that idle for long.
func (c *ReqClient) keepIdle() {
	tick := time.NewTicker(max(c.cfg.IdleTimeout/4, 10*time.Millisecond))
	defer tick.Stop()
	pause := backoff.Backoff{Min: c.cfg.BackoffMin, Max: c.cfg.BackoffMax, Jitter: true}
	var connectedAt time.Time // the last good connect
	for {
		if c.claimPlace() {
			if c.connectMaster() == nil {
				lasted := time.Since(connectedAt)
				connectedAt = time.Now()
				if lasted > c.cfg.BackoffMax {
					pause.Reset()
					continue
				}
				// A listener that accepts a connection and ends it at once is not a master; it is not called again without a pause.
			}
			if !pause.Wait(c.ctx) {
				return
			}
			continue
		}
		select {
		case <-c.ctx.Done():
			return
		case <-c.wake:
		case <-tick.C:
			c.closeIdle()
		}
	}
}

// claimPlace reserves the place of one connection if the pool is short of what it keeps.
func (c *ReqClient) claimPlace() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.fresh+c.dialing >= c.cfg.MinIdle || c.countPlaces() >= c.cfg.MaxConns {
		return false
	}
	c.dialing++
	return true
}

// growPool starts connects for the waiting calls while the master is known to answer; the keeper does it when not.
func (c *ReqClient) growPool() {
	for c.state == up && !c.closed && c.dialing < min(c.queue.ready, maxDialing) && c.countPlaces() < c.cfg.MaxConns {
		c.dialing++
		c.wg.Go(func() { _ = c.connectMaster() })
	}
}

// connectMaster opens the connection a place was reserved for and starts its reader.
func (c *ReqClient) connectMaster() error {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	z, err := c.dialMaster()
	if err != nil {
		c.noteUnreachable(err)
		return err
	}
	cn := &conn{c: c, z: z, epoch: epoch}
	c.metrics.countConnect()
	next := c.addConn(cn)
	c.wg.Go(cn.readReplies)
	next.sendRequest()
	return nil
}

func (c *ReqClient) dialMaster() (*zmtp.Client, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	raw, err := c.cfg.Dial(ctx, "tcp", c.cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the salt-master: %w", err)
	}
	o := c.cfg.clientOptions()
	o.OnSilent = c.setSilent
	z, err := zmtp.NewClient(ctx, raw, o)
	if err != nil {
		return nil, fmt.Errorf("connect to the salt-master at %s: %w", c.cfg.Addr, err)
	}
	return z, nil
}

// addConn takes a new connection into the pool. One whose epoch passed while it was made is let go again.
func (c *ReqClient) addConn(cn *conn) (next job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing--
	c.conns[cn] = struct{}{}
	c.metrics.conns.Set(float64(len(c.conns)))
	if c.closed || cn.epoch != c.epoch {
		cn.close()
		signal.Send(c.wake)
		return job{}
	}
	c.fresh++
	if c.state != up {
		c.stalled, c.lastReply = "", time.Now()
		if c.rose.IsZero() {
			c.rose = c.lastReply
		}
		c.setState(up)
		signal.Send(c.risen)
		c.cfg.Logger.Info("salt-master answers", "remote", c.cfg.Addr)
	}
	next = c.releaseConn(cn)
	c.growPool()
	return next
}

// noteUnreachable takes a failed connect. Without any good connection the master counts as down, and the calls that
// wait for it fail.
func (c *ReqClient) noteUnreachable(err error) {
	c.mu.Lock()
	c.dialing--
	var waiting []*call
	news := c.state != down && c.fresh == 0 && !c.closed
	if news {
		c.setState(down)
		c.rose = time.Time{}
		waiting = c.queue.takeAll()
		c.metrics.queue.Set(0)
	}
	c.mu.Unlock()
	if news {
		c.cfg.Logger.Warn("salt-master is down", "remote", c.cfg.Addr, "err", err)
	}
	failAll(waiting, ErrDown)
	signal.Send(c.wake)
}

// closeIdle closes what has idled for long, the oldest first.
func (c *ReqClient) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 && c.fresh > c.cfg.MinIdle && time.Since(c.idle[0].idleSince) > c.cfg.IdleTimeout {
		cn := c.idle[0]
		cn.close()
		c.removeConn(cn)
	}
}
