package upstream

import (
	"time"

	"saltclusterd/signal"
)

// submitCall gives the call to an idle connection, queues it or fails it.
func (c *ReqClient) submitCall(ca *call) {
	j, shed, err := c.placeCall(ca)
	if shed != nil {
		shed.finishCall(nil, ErrBusy)
	}
	if err != nil {
		ca.finishCall(nil, err)
		return
	}
	j.sendRequest()
}

// placeCall finds the call's connection, none when it has to wait. A full queue makes room for who asks little: shed is
// who has to go instead.
func (c *ReqClient) placeCall(ca *call) (j job, shed *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ca.stage == over { // given up before it began
		return job{}, nil, nil
	}
	err = c.checkCall(ca)
	held := c.queue.isFull(ca.from)
	if err == nil && (held || len(c.idle) == 0) && c.queue.len >= c.cfg.MaxQueue {
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
	if len(c.idle) > 0 && !held {
		return c.assignCall(c.lastIdle(), ca), nil, nil
	}
	c.queue.pushCall(ca)
	c.metrics.queue.Set(float64(c.queue.len))
	c.growPool()
	return job{}, shed, nil
}

func (c *ReqClient) checkCall(ca *call) error {
	switch {
	case c.closed || c.ctx == nil:
		return errQueuedClosed
	case c.state == down || c.stalled != "":
		return ErrDown
	case int64(len(ca.body)) > c.cfg.MaxRequest:
		return unsentErrorOf(ErrTooLarge)
	}
	return nil
}

func (c *ReqClient) assignCall(cn *conn, ca *call) job {
	ca.stage, ca.conn = inFlight, cn
	cn.call, cn.owed, cn.long, cn.asked = ca, true, isLong(ca.from), time.Now()
	if cn.counted = c.queue.beginCall(ca.from); cn.counted {
		cn.from = ca.from
	}
	if len(ca.body) > directWrite {
		c.wg.Add(1) // under the lock and before Close, which waits for it
	}
	return job{cn, ca.body}
}

// noteSettled notes that the master owes a connection nothing any more, or that this will never be known: its sender
// may send another call.
func (c *ReqClient) noteSettled(cn *conn) {
	if cn.counted {
		c.queue.endCall(cn.from)
	}
	if cn.kept {
		c.kept--
	}
	cn.from, cn.counted, cn.kept = "", false, false
}

// dispatchCalls gives idle connections calls that may go: those of a sender who had to wait for one of his own. What it
// returns is to be sent without the lock.
func (c *ReqClient) dispatchCalls() (jobs []job) {
	for len(c.idle) > 0 && c.queue.ready > 0 {
		jobs = append(jobs, c.assignCall(c.lastIdle(), c.queue.popCall()))
		c.metrics.queue.Set(float64(c.queue.len))
	}
	return jobs
}

func sendAll(jobs []job) {
	for _, j := range jobs {
		j.sendRequest()
	}
}

// handleReply takes a reply and gives the connection its next call.
func (c *ReqClient) handleReply(cn *conn, body []byte) error {
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
	c.noteSettled(cn)
	c.noteProgress()
	next := c.releaseConn(cn)
	more := c.dispatchCalls()
	c.mu.Unlock()
	if ca != nil {
		ca.finishCall(body, nil)
	}
	next.sendRequest()
	sendAll(more)
	return nil
}

// releaseConn gives a free connection the next waiting call, or makes it idle, or ends it when it is of a former epoch.
func (c *ReqClient) releaseConn(cn *conn) job {
	if cn.epoch != c.epoch || c.closed {
		cn.close()
		return job{}
	}
	next := c.queue.popCall()
	if next == nil {
		cn.idleSince = time.Now()
		c.idle = append(c.idle, cn)
		return job{}
	}
	c.metrics.queue.Set(float64(c.queue.len))
	return c.assignCall(cn, next)
}

// abandonCall ends a call for the caller. A request in flight leaves its connection draining: it goes back to work when
// the stale reply has come, and is closed when that takes too long. Where it is counted what a sender has under way,
// some are kept: a worker of the master's is busy with that call all the same, and only the reply tells when it is not.
func (c *ReqClient) abandonCall(ca *call, err error) {
	c.mu.Lock()
	switch ca.stage {
	case over:
		c.mu.Unlock()
		return
	case queued:
		c.queue.removeCall(ca)
		c.metrics.queue.Set(float64(c.queue.len))
		err = unsentErrorOf(err)
	case inFlight:
		cn := ca.conn
		cn.call, ca.conn = nil, nil
		cn.drain = time.AfterFunc(c.cfg.DrainTimeout, func() { c.dropStale(cn, c.cfg.StaleTimeout) })
	default:
		err = unsentErrorOf(err)
	}
	ca.stage = over
	c.mu.Unlock()
	ca.finishCall(nil, err)
}

// dropStale closes a connection that still owes a reply that no caller waits for. With keep it may stay for that long,
// so that it is known when the master is done with it. The master does not count as lost because of that.
func (c *ReqClient) dropStale(cn *conn, keep time.Duration) {
	c.mu.Lock()
	if cn.drain == nil || !cn.owed || cn.call != nil {
		c.mu.Unlock()
		return
	}
	if keep > 0 && cn.counted && c.kept < c.cfg.MaxConns/staleShare {
		c.kept++
		cn.kept = true
		cn.drain = time.AfterFunc(keep, func() { c.dropStale(cn, 0) })
		c.mu.Unlock()
		return
	}
	cn.close()
	c.removeConn(cn)
	more := c.dispatchCalls()
	c.mu.Unlock()
	sendAll(more)
	signal.Send(c.wake)
}

// staleShare is what part of the connections may be kept for replies that no caller waits for: one in so many.
const staleShare = 4

// removeConn takes a connection out of the pool.
func (c *ReqClient) removeConn(cn *conn) {
	if cn.gone {
		return
	}
	cn.gone = true
	c.noteSettled(cn)
	c.forgetConn(cn)
	c.metrics.conns.Set(float64(len(c.conns)))
	c.growPool() // there is room for another one
}

// handleLost takes the end of a connection. One which we did not close ourselves starts a new epoch: whatever the
// master went through, the other connections have gone through it too, or will notice soon.
func (c *ReqClient) handleLost(cn *conn, err error) {
	c.mu.Lock()
	ca := cn.call
	if ca != nil {
		cn.call, ca.stage, ca.conn = nil, over, nil
	}
	surprise := !cn.gone && !c.closed && cn.epoch == c.epoch
	c.removeConn(cn)
	if surprise {
		c.newEpoch()
	}
	closed := c.closed
	more := c.dispatchCalls()
	c.mu.Unlock()
	sendAll(more)
	signal.Send(c.wake) // its place is free, which the keeper may wait for
	if surprise {
		c.cfg.Logger.Warn("connection to the salt-master lost", "remote", c.cfg.Addr, "err", err)
	}
	if ca == nil {
		return
	}
	if closed {
		ca.finishCall(nil, ErrClosed)
		return
	}
	ca.finishCall(nil, ErrLost)
}

func (c *ReqClient) newEpoch() {
	c.beginEpoch()
	c.stalled = ""
	c.setState(connecting)
	signal.Send(c.wake)
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
