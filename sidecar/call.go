package sidecar

import (
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// call is a request that has been opened and found good.
type call struct {
	*request
	env     saltwire.Envelope
	peek    saltwire.Peek
	plain   []byte
	session *session
	// crypticle opens the minion's answer. shared: it is the key that all minions share, not the session's.
	crypticle *saltcrypt.Crypticle
	shared    bool

	progress router.Call // what router.Next decides by
	err      error       // why the actions so far have failed
	// masterResult is how asking the local master ended. It is used when a return is to be kept for that master and
	// that fails.
	masterResult router.Result

	partial bool   // it has some events of a request whose other events go other ways
	leave   func() // passes the file gate outwards; nil: the call has not passed it
	news    uint64 // of the masters, when it was routed; see waitQueue
	waited  bool   // it was in the waitQueue
	copied  bool   // other nodes have their copies
}

// isReturn says whether a call is a return that this node can take without its master.
func (p *Proxy) isReturn(c *call) bool { return p.cfg.Returns != nil && router.IsReturn(c.peek.Cmd) }

// isNameless says that a call does not name its sender.
func (c *call) isNameless() bool { return c.shared && c.peek.ID == "" }

// replaceLoad gives a call another load, for all that see it from here on.
func (c *call) replaceLoad(plain []byte) bool {
	peek, err := saltwire.PeekLoad(plain)
	if err != nil {
		return false
	}
	c.peek, c.plain = peek, plain
	c.env.Load = c.crypticle.Seal(nil, plain, nil)
	c.body = saltwire.AppendEnvelope(nil, c.env)
	return true
}

// leaveGate notes that the local master is done with a call.
func (c *call) leaveGate() {
	if c.leave != nil {
		c.leave()
	}
}

// senderID is the minion that a call comes from, empty when that is not certain; version 2 does not name it outside.
// A request that makes a worker of the master wait, or may take long, has its own queue, so that the minion's other
// requests do not wait for it.
func (c *call) senderID() string {
	id := c.env.ID
	if id == "" && c.peek.HasTok { // which was verified; with another's name it would take that one's turns
		id = c.peek.ID
	}
	switch {
	case id != "" && router.Waits(&c.peek):
		return upstream.Waiting + id
	case router.Long(c.peek.Cmd):
		return upstream.Long + id
	}
	return id
}

// traceCommand notes what is asked, when it is traced.
func (c *call) traceCommand() {
	if c.trace == nil {
		return
	}
	cmd := c.peek.Cmd
	if _, known := router.Lookup(router.AES, cmd); !known {
		cmd = "unknown" // a minion can make up any name
	}
	c.trace.Command(cmd, c.env.ID)
	c.trace.Step("route")
}

// rawHeader is the longest header of a raw value in msgpack.
const rawHeader = 5

// sealReply makes the body that answers a call with msgpack, in one piece of memory: a chunk of a file is a megabyte.
func (c *call) sealReply(reply []byte) []byte {
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	return c.sealInto(make([]byte, 0, n+rawHeader), reply)
}

// sealInto is sealReply in given memory, which has room enough.
func (c *call) sealInto(body, reply []byte) []byte {
	n := saltcrypt.SealedLen(len(c.peek.Nonce) + len(reply))
	return c.crypticle.Seal(saltwire.AppendRawHeader(body, n), reply, []byte(c.peek.Nonce))
}

// actionOutcome is the end of an action, for router.Next.
func (c *call) actionOutcome(a router.Action, at node.ID, r router.Result) router.Outcome {
	return router.Outcome{Action: a, Node: at, Result: r, Gone: c.to.Gone()}
}
