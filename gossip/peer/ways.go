package peer

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// ways knows which members this node does not reach directly, and looks for when it does again.
type ways struct {
	mu     sync.Mutex
	closed bool
	to     map[node.ID]*way
}

// way is how a member is reached. There is none of a member of which nothing was ever suspected.
type way struct {
	state state
	// A direct way that was lost again soon counts as there when connections have been made for as long as proof; since
	// is the first of these.
	proof  time.Duration
	since  time.Time
	direct time.Time // when it was found to be there again last

	dialling  chan struct{} // holds one: a tunnel for peer RPC is being made
	made      int           // how many were
	through   node.ID       // who made the last one
	tunnelled bool          // one was made since the direct way is lost
	none      time.Time     // no member is asked for a tunnel before
	pause     backoff.Backoff
}

type state int

const (
	direct    state = iota
	suspected       // a connection could not be made; it is being looked whether another one can
	indirect        // connections may go through other members
)

const (
	// A way that loses packets, or all that are long, lets handshakes pass. So that it is not taken and lost again for
	// ever, one that was lost within provenAfter must let them pass for minProof, and for twice as long each time.
	minProof    = 2 * time.Second
	maxProof    = time.Minute
	provenAfter = 5 * time.Minute

	minDirectPause = 100 * time.Millisecond
	maxDirectPause = 2 * time.Second
	minTunnelPause = 300 * time.Millisecond
	maxTunnelPause = 5 * time.Second
)

// wayTo returns what is known of the way to a member. The caller holds mu.
func (w *ways) wayTo(id node.ID) *way {
	if w.to[id] == nil {
		w.to[id] = &way{
			dialling: make(chan struct{}, 1), pause: backoff.Backoff{Min: minTunnelPause, Max: maxTunnelPause},
		}
	}
	return w.to[id]
}

func (w *ways) isIndirect(id node.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to[id] != nil && w.to[id].state == indirect
}

// isUnproven reports whether the direct way to a member was lost soon after it had been taken again.
func (w *ways) isUnproven(id node.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to[id] != nil && w.to[id].state == indirect && w.to[id].proof > 0
}

// close keeps the port from looking for more.
func (w *ways) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// noteDirect notes how an attempt to reach a member directly ended. over: there is nothing to look for any more.
// again: it was reached through others until now.
func (w *ways) noteDirect(id node.ID, err error, now time.Time) (over, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.wayTo(id)
	switch {
	case d.state == direct:
		return true, false
	case isCutOff(err):
		d.state, d.since = indirect, time.Time{}
		return false, false
	case err == nil && d.proof > 0 && d.since.IsZero():
		d.since = now
		return false, false
	case err == nil && now.Sub(d.since) < d.proof:
		return false, false
	}
	again = err == nil && d.tunnelled
	d.state, d.tunnelled, d.direct, d.since = direct, false, now, time.Time{}
	if errors.Is(err, ErrUnknownNode) {
		delete(w.to, id)
	}
	return true, again
}

// noteMade notes that a member has made a tunnel to another one.
func (w *ways) noteMade(id, through node.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.wayTo(id)
	d.made, d.through = d.made+1, through
	d.pause.Reset()
}

// noteUsed notes that a tunnel is used; true: the first one since the direct way is lost.
func (w *ways) noteUsed(id node.ID) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.wayTo(id)
	first = d.state == indirect && !d.tunnelled
	d.tunnelled = d.state == indirect
	return first
}

// noteNoTunnel notes that no member could make one.
func (w *ways) noteNoTunnel(id node.ID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.wayTo(id)
	d.none = now.Add(d.pause.Next())
}

// mayAsk reports whether it makes sense to ask for a tunnel, and who made the last one.
func (w *ways) mayAsk(id node.ID, now time.Time) (through node.ID, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.wayTo(id)
	return d.through, !now.Before(d.none)
}

// takeTurn waits for the caller's turn to make a tunnel for peer RPC: requests that wait share what one of them makes.
// It returns errMade when that was done meanwhile.
func (w *ways) takeTurn(ctx context.Context, id node.ID) (leave func(), err error) {
	w.mu.Lock()
	d := w.wayTo(id)
	made := d.made
	w.mu.Unlock()
	select {
	case d.dialling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	leave = func() { <-d.dialling }
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.made != made {
		leave()
		return nil, errMade
	}
	return leave, nil
}

// Suspect says that a member that is connected says nothing. From now on connections may go through other members,
// until the direct way is found to be there.
func (p *Port) Suspect(id node.ID) {
	p.suspectWay(id, func(d *way) {
		d.state = indirect
		if time.Since(d.direct) < provenAfter {
			d.proof = min(max(minProof, 2*d.proof), maxProof)
		} else {
			d.proof = 0
		}
	})
}

// suspectDial is for a connection that could not be made in time. Whoever dialled may have had little patience: another
// attempt decides.
func (p *Port) suspectDial(id node.ID) {
	p.suspectWay(id, func(d *way) { d.state = suspected })
}

func (p *Port) suspectWay(id node.ID, begin func(*way)) {
	p.ways.mu.Lock()
	defer p.ways.mu.Unlock()
	d := p.ways.wayTo(id)
	if p.ways.closed || d.state == indirect {
		return
	}
	watched := d.state == suspected
	begin(d)
	if !watched {
		p.wg.Go(func() { p.watchWay(id) })
	}
}

// Indirect reports whether a member is not reached directly, as far as is known.
func (p *Port) Indirect(id node.ID) bool { return p.ways.isIndirect(id) }

// Tunnelled lists the members that this node reaches through others only, in any order. One that it does not reach in
// any way is not among them.
func (p *Port) Tunnelled() (through []node.ID) {
	open := p.reg.tunnelledTo()
	p.ways.mu.Lock()
	defer p.ways.mu.Unlock()
	for id, d := range p.ways.to {
		if d.state == indirect && open[id] {
			through = append(through, id)
		}
	}
	return through
}

// watchWay returns when the member is reached directly, or its host says that it does not run.
func (p *Port) watchWay(id node.ID) {
	pause := backoff.Backoff{Min: minDirectPause, Max: maxDirectPause}
	for within := firstProbe; ; within = p.cfg.Limits.Handshake {
		err := p.probeWay(id, within)
		if p.ctx.Err() != nil || p.noteDirect(id, err) {
			return
		}
		pause.Wait(p.ctx)
	}
}

// firstProbe is how long the first look for the direct way may take: until then the direct way alone is used.
const firstProbe = time.Second

func (p *Port) probeWay(id node.ID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	t, err := p.dialMember(ctx, id, ProtoHTTP)
	if err == nil {
		_ = Cut(t)
	}
	return err
}

// noteDirect notes how an attempt to reach a member directly ended, and reports whether there is nothing to look for
// any more. Connections of raft that go through others end then; peer RPC ends its own.
func (p *Port) noteDirect(id node.ID, err error) (over bool) {
	if errors.Is(err, context.Canceled) { // the caller gave up, or another way was quicker
		return false
	}
	over, again := p.ways.noteDirect(id, err, time.Now())
	if again {
		p.log.Info("a member is reached directly again", "node", id)
	}
	if over && err == nil {
		for _, c := range p.reg.tunnelledConns(id, ProtoRaft) {
			_ = c.Close()
		}
	}
	return over
}

// isCutOff reports whether dialling failed because of the way to the member: a member that does not run is refused by
// its host, and one that does not want the connection says so.
func isCutOff(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	// EACCES: "administratively prohibited" over IPv6, which is how firewalld rejects.
	for _, no := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN,
		syscall.EACCES} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// wayTransport sends a request directly, or through another member while its receiver is not reached directly.
type wayTransport struct {
	ways             *ways
	direct, indirect *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *wayTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if id, err := node.ParseID(req.URL.Hostname()); err == nil && t.ways.isIndirect(id) {
		return t.indirect.RoundTrip(req)
	}
	return t.direct.RoundTrip(req)
}

// CloseIdleConnections is what http.Client calls.
func (t *wayTransport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.indirect.CloseIdleConnections()
}
