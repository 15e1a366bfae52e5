package sidecar

import (
	"context"
	"net/netip"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/trace"
)

// request is one request and the Responder that takes its end.
type request struct {
	body   []byte
	remote netip.AddrPort
	from   node.ID // the node that relayed it; empty: it came from the network
	at     time.Time
	to     Responder
	trace  *trace.Request // nil: it is not traced

	proves func(id string) bool // its sender has a certificate with that name; nil: it proves nothing

	signIn   bool // relayed as a sign-in: it may be nothing else
	caughtUp bool // it has waited for news of the cluster
}

// Responder is where a request came from. One of Reply, ReplyLent, Drop and PassBack ends the request; none of them
// blocks.
type Responder interface {
	Reply(body []byte)
	// ReplyLent is Reply with memory that back gets when it can be used again, if ever.
	ReplyLent(body []byte, back func([]byte))
	Drop()
	// PassBack returns a relayed request, with which nothing was done, to the node that relayed it. down: because the
	// master is down.
	PassBack(down bool)
	// Gone says whether the answer is not waited for any more.
	Gone() bool
	// Refused notes that the request was refused.
	Refused()
	// Authenticated notes that the request is certainly the minion's.
	Authenticated(minion string)
	// Linger takes room for a request that waits before it is certain who has sent it; false: there is none.
	Linger() bool
}

// edgeResponder answers on a connection of this node's 4506.
type edgeResponder struct{ *edge.Request }

// PassBack implements Responder.
func (r edgeResponder) PassBack(bool) { r.Drop() }

// peerResponder answers to the node that relayed a request.
type peerResponder struct {
	ctx    context.Context // ends when that node does not wait any more
	hands  relay.Hands
	refuse func()
}

// Reply implements Responder, as the following do.
func (r *peerResponder) Reply(body []byte)                     { r.hands.Reply(body) }
func (r *peerResponder) ReplyLent(body []byte, _ func([]byte)) { r.hands.Reply(body) }
func (r *peerResponder) Drop()                                 { r.hands.Drop() }
func (r *peerResponder) PassBack(down bool)                    { r.hands.Pass(down) }
func (r *peerResponder) Gone() bool                            { return r.ctx.Err() != nil }
func (r *peerResponder) Refused()                              { r.refuse() }
func (r *peerResponder) Authenticated(string)                  {}
func (r *peerResponder) Linger() bool                          { return true }

// tracedResponder ends the trace of a request with it.
type tracedResponder struct {
	Responder
	trace *trace.Request
}

// Reply implements Responder, as the following do.
func (r tracedResponder) Reply(body []byte) {
	r.Responder.Reply(body)
	r.trace.End(len(body))
}

func (r tracedResponder) ReplyLent(body []byte, _ func([]byte)) { r.Reply(body) }

func (r tracedResponder) Drop() {
	r.Responder.Drop()
	r.trace.End(-1)
}

func (r tracedResponder) PassBack(down bool) {
	r.Responder.PassBack(down)
	r.trace.End(-1)
}

// resealingResponder turns replies under the key from into replies under the key that the minion has.
type resealingResponder struct {
	Responder
	from, key *saltcrypt.Crypticle
}

// Reply implements Responder, as the following does.
func (r resealingResponder) Reply(body []byte) { r.Responder.Reply(resealReply(body, r.from, r.key)) }

func (r resealingResponder) ReplyLent(body []byte, _ func([]byte)) { r.Reply(body) }

// traceBy traces a request from here on, if it is one of those that are traced.
func (x *request) traceBy(t *trace.Tracer, parent trace.Parent) {
	r := t.Begin(x.at, parent)
	if r == nil {
		return
	}
	x.trace, x.to = r, tracedResponder{x.to, r}
	r.Step("open")
}
