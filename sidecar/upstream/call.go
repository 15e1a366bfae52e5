package upstream

import "time"

// stage is how far a call has come. It is guarded by ReqClient.mu.
type stage uint8

const (
	fresh    stage = iota
	queued         // in the client's queue
	inFlight       // conn holds it
	over           // its end has been, or is being, told
)

// call is one Do or Go. Calls of Do are recycled, with their timer and channel.
type call struct {
	c       *ReqClient
	from    string // for whom, see turns
	body    []byte
	begun   time.Time
	timer   *time.Timer
	unwatch func() bool // stops watching the caller's context

	done  func([]byte, error) // of Go
	ready chan struct{}       // of Do
	reply []byte
	err   error

	stage      stage
	conn       *conn
	line       *line // while queued
	prev, next *call // in line
}

func (c *ReqClient) newCall() *call { return &call{c: c, ready: make(chan struct{}, 1)} }

func (ca *call) startTimer(timeout time.Duration) {
	ca.begun = time.Now()
	if ca.timer == nil {
		ca.timer = time.AfterFunc(timeout, func() { ca.c.abandonCall(ca, ErrTimeout) })
	} else {
		ca.timer.Reset(timeout)
	}
}

// finishCall tells the end. Only who moved the call to stage over may call it, without holding the lock.
func (ca *call) finishCall(reply []byte, err error) {
	ca.c.metrics.observeCall(ca.begun, err)
	if ca.unwatch != nil {
		ca.unwatch()
	}
	if ca.done != nil {
		ca.timer.Stop()
		ca.done(reply, err)
		return
	}
	ca.reply, ca.err = reply, err
	ca.ready <- struct{}{}
}

// recycleCall puts a call of Do back, unless its timer is just firing and might end the next one.
func (ca *call) recycleCall() {
	if !ca.timer.Stop() {
		return
	}
	ca.from, ca.body, ca.reply, ca.err, ca.stage, ca.conn = "", nil, nil, nil, fresh, nil
	ca.c.calls.Put(ca)
}

func failAll(list []*call, err error) {
	for _, ca := range list {
		ca.finishCall(nil, err)
	}
}
