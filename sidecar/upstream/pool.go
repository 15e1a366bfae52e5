package upstream

import (
	"slices"
	"time"
)

// submit gives the call to an idle connection, queues it or fails it.
func (c *ReqClient) submit(ca *call) {
	j, shed, err := c.place(ca)
	if shed != nil {
		shed.finish(nil, ErrBusy)
	}
	if err != nil {
		ca.finish(nil, err)
		return
	}
	j.send()
}

// place finds the call's connection, none when it has to wait. A full queue makes room for who asks little: shed is who
// has to go instead.
func (c *ReqClient) place(ca *call) (j job, shed *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ca.stage == over { // given up before it began
		return job{}, nil, nil
	}
	err = c.refuse(ca)
	if err == nil && len(c.idle) == 0 && c.queue.len >= c.cfg.MaxQueue {
		if shed = c.queue.makeRoom(ca.from); shed == nil {
			err = ErrBusy
		} else {
			shed.stage = over
		}
	}
	if err != nil {
		ca.stage = over
		return job{}, nil, err
	}
	if n := len(c.idle); n > 0 {
		cn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return c.assign(cn, ca), nil, nil
	}
	c.queue.push(ca)
	c.metrics.queue.Set(float64(c.queue.len))
	c.grow()
	return job{}, shed, nil
}

func (c *ReqClient) refuse(ca *call) error {
	switch {
	case c.closed || c.ctx == nil:
		return errQueuedClosed
	case c.state == down || c.stalled != "":
		return ErrDown
	case int64(len(ca.body)) > c.cfg.MaxRequest:
		return unsent(ErrTooLarge)
	}
	return nil
}

func (c *ReqClient) assign(cn *conn, ca *call) job {
	ca.stage, ca.conn = inFlight, cn
	cn.call, cn.owed, cn.asked = ca, true, time.Now()
	if len(ca.body) > directWrite {
		c.wg.Add(1) // under the lock and before Close, which waits for it
	}
	return job{cn, ca.body}
}

// replied takes a reply and gives the connection its next call.
func (c *ReqClient) replied(cn *conn, body []byte) error {
	c.mu.Lock()
	if !cn.owed {
		c.mu.Unlock()
		return errUnexpected
	}
	ca := cn.call
	cn.call, cn.owed = nil, false
	if cn.drain != nil {
		cn.drain.Stop()
		cn.drain = nil
	}
	if ca != nil {
		ca.stage, ca.conn = over, nil
	}
	c.progress()
	next := c.release(cn)
	c.mu.Unlock()
	if ca != nil {
		ca.finish(body, nil)
	}
	next.send()
	return nil
}

// release gives a free connection the next waiting call, or makes it idle, or ends it when it is of a former epoch.
func (c *ReqClient) release(cn *conn) job {
	if cn.epoch != c.epoch || c.closed {
		cn.close()
		return job{}
	}
	next := c.queue.pop()
	if next == nil {
		cn.idleSince = time.Now()
		c.idle = append(c.idle, cn)
		return job{}
	}
	c.metrics.queue.Set(float64(c.queue.len))
	return c.assign(cn, next)
}

// abandon ends a call for the caller. A request in flight leaves its connection draining: it goes back to work when
// the stale reply has come, and is closed when that takes too long.
func (c *ReqClient) abandon(ca *call, err error) {
	c.mu.Lock()
	switch ca.stage {
	case over:
		c.mu.Unlock()
		return
	case queued:
		c.queue.remove(ca)
		c.metrics.queue.Set(float64(c.queue.len))
		err = unsent(err)
	case inFlight:
		cn := ca.conn
		cn.call, ca.conn = nil, nil
		cn.drain = time.AfterFunc(c.cfg.DrainTimeout, func() { c.dropStale(cn) })
	default:
		err = unsent(err)
	}
	ca.stage = over
	c.mu.Unlock()
	ca.finish(nil, err)
}

// dropStale closes a connection that still owes a reply nobody waits for. The master is not lost by that.
func (c *ReqClient) dropStale(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cn.drain == nil || !cn.owed || cn.call != nil {
		return
	}
	cn.close()
	c.remove(cn)
	signal(c.wake)
}

// remove takes a connection out of the pool.
func (c *ReqClient) remove(cn *conn) {
	if cn.gone {
		return
	}
	cn.gone = true
	delete(c.conns, cn)
	if cn.epoch == c.epoch {
		c.fresh--
	}
	if i := slices.Index(c.idle, cn); i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.metrics.conns.Set(float64(len(c.conns)))
	c.grow() // there is room for another one
}

// lost takes the end of a connection. One which we did not close ourselves starts a new epoch: whatever the master
// went through, the other connections have gone through it too, or will notice soon.
func (c *ReqClient) lost(cn *conn, err error) {
	c.mu.Lock()
	ca := cn.call
	if ca != nil {
		cn.call, ca.stage, ca.conn = nil, over, nil
	}
	surprise := !cn.gone && !c.closed && cn.epoch == c.epoch
	c.remove(cn)
	if surprise {
		c.newEpoch()
	}
	closed := c.closed
	c.mu.Unlock()
	if surprise {
		c.cfg.Logger.Warn("connection to the salt-master lost", "remote", c.cfg.Addr, "err", err)
	}
	if ca == nil {
		return
	}
	if closed {
		ca.finish(nil, ErrClosed)
		return
	}
	ca.finish(nil, ErrLost)
}

func (c *ReqClient) newEpoch() {
	c.epoch++
	c.fresh = 0
	for _, old := range c.idle {
		old.close()
	}
	c.idle = nil
	c.stalled = ""
	c.setState(connecting)
	signal(c.wake)
}

func (c *ReqClient) setState(s state) {
	c.state = s
	c.showUp()
}

// showUp tells others whether calls are taken. Wants mu.
func (c *ReqClient) showUp() {
	isUp := c.state == up && c.stalled == ""
	c.isUp.Store(isUp)
	c.metrics.setUp(isUp)
}
