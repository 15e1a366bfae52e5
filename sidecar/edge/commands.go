package edge

import "saltclusterd/sidecar/edge/netconn"

// Subscriptions, cancellations and PINGs cost more here than they cost their sender. A minion sends a few of them when
// it connects, and at most one every few seconds after that.
const (
	commandBurst = 1000
	commandRate  = 20 // per second
)

// commandCount counts what a peer sends besides requests. The zero value is ready; it is the reader's.
type commandCount struct {
	used int64 // so many were sent, less those that time has made up for
	at   int64 // clock up to which it has
}

// allow counts a command, and tells whether there may be another one.
func (c *commandCount) allow(now int64) bool {
	const each = int64(1e9) / commandRate
	if over := (now - c.at) / each; over >= c.used {
		c.used, c.at = 0, now
	} else if over > 0 {
		c.used -= over
		c.at += over * each
	}
	c.used++
	return c.used <= commandBurst
}

// errCommands ends a connection whose peer sends too many.
var errCommands = netconn.NewError(netconn.ReasonCommands, "too many commands or changes of subscriptions")

// countCommand counts a command. An error ends the connection.
func (c *commandCount) countCommand() error {
	if !c.allow(netconn.Clock()) {
		return errCommands
	}
	return nil
}
