package sidecar

import (
	"context"
	"net/netip"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// Keys is the cluster's view of minion keys.
type Keys interface {
	// Accepted returns the accepted key of a minion.
	Accepted(id string) (pub string, ok bool)
	// Session derives the session key of a minion with that accepted key.
	Session(id, pub string) saltcrypt.Key
	// Generation numbers the seed that Session derives from; it grows.
	Generation() uint64
	// FormerSessions derives the session keys of the generations before that are still good, the newest first.
	FormerSessions(id, pub string) []saltcrypt.Key
	// CatchUp waits until this node knows what the cluster knew when it was called. ErrBehind means that it lacks
	// something that was decided; any other error means that this cannot be told.
	CatchUp(ctx context.Context) error
	// Behind returns for how long this node has known that it lacks something that was decided; zero: it knows of nothing.
	Behind() time.Duration
	// OnDisk returns nil when the local master can see what is known of the key of id, else a function that waits for it.
	OnDisk(id string) (wait func(context.Context) error)
}

// Master sends requests to the local stock master (upstream.ReqClient).
type Master interface {
	// Go calls done exactly once, from any goroutine, when ctx ends or by has come at the latest. Senders (from) take
	// turns.
	Go(ctx context.Context, by time.Time, from string, body []byte, done func(reply []byte, err error))
	Up() bool
}

// Sessions sees to the session key files of the local master (localmaster.Sessions).
type Sessions interface {
	// Ensure makes the local master use want for id. When it cannot, it returns the key the master uses and false.
	Ensure(id string, want saltcrypt.Key) (local saltcrypt.Key, same bool, err error)
	// Own returns the key that the local master made for id on its own, before Ensure was called for id, and when that
	// expires.
	Own(id string) (key saltcrypt.Key, until time.Time, ok bool)
	// Invalidate forgets what was ensured for id: the master has refused it.
	Invalidate(id string)
}

// Epochs is the cluster's AES key (epochs.Manager); only requests of payload version 2 are sealed with it.
type Epochs interface {
	Sealing() (cur, prev *epochs.Material)
}

// Relay sends a request to another node (relay.Client).
type Relay interface {
	Do(ctx context.Context, to node.ID, body []byte, remote netip.AddrPort) ([]byte, error)
}

// Returns takes returns of minions without the local master (returns.Service). Those with done call it once, from their
// caller's goroutine or the journal's; with a nil error the return is on disk and reply is what a master would answer.
type Returns interface {
	// Take takes a return of a job of this node. Errors: returns.ErrPython, returns.ErrMalformed, the journal's.
	Take(r returns.Request, done func(reply []byte, err error))
	// Keep takes one for another node, which cannot be reached.
	Keep(to node.ID, r returns.Request, done func(reply []byte, err error))
	// Defer takes one that the local master does not take now; Defers says whether it would.
	Defers() bool
	Defer(r returns.Request, done func(reply []byte, err error))
	// HandOff has another node keep one for node to (this one, perhaps) when this node's journal fails.
	HandOff(ctx context.Context, to node.ID, r returns.Request) (reply []byte, err error)
	// MasterTakes says why the local master could not store a return of so many bytes now.
	MasterTakes(bytes int) error
	// Answered notes that the local master has answered one.
	Answered(minion string, load []byte)
	// Mend makes way in the job cache for a return that the local master is about to get.
	Mend(jid, minion string)
	// Published answers pub_ret of a minion from the job cache. Errors: returns.ErrPython, returns.ErrUnknown, the disk's.
	Published(ctx context.Context, jid, minion string) (reply []byte, err error)
}

// Events fires what minions say on the local master's bus (events.Service).
type Events interface {
	// Take calls done once, from this goroutine or its own, where it must not block: with what a master would answer when
	// the bus has the events, events.ErrPython when only a master can take the load and nothing was fired,
	// events.ErrMalformed, events.ErrUnsure.
	Take(minion string, load []byte, received time.Time, done func(reply []byte, err error))
}

// Files answers requests for files from this node's file_roots (fileserve.Server).
type Files interface {
	// Takes says whether a command may be answered here now.
	Takes(cmd string) bool
	// Reads says whether the load of such a command can be read here, without waiting for anything; if not, only a master
	// can answer.
	Reads(cmd string, load []byte) bool
	// Answer gives the answer to finish, once, or returns an error: then only a master can answer. It may take its time.
	Answer(ctx context.Context, cmd, minion string, load []byte, finish func(reply []byte)) error
}

// Mines answers requests about mines (mines.Service).
type Mines interface {
	// Takes says whether a command may be answered here now.
	Takes(cmd string) bool
	// Answer gives the answer to finish, once, or returns an error: then nothing was done, and only a master can answer.
	// It may take its time.
	Answer(ctx context.Context, cmd, minion string, load []byte, finish func(reply []byte)) error
}

// SignIns answers _auth (signin.Service).
type SignIns interface {
	Serve(*signin.Request)
}
