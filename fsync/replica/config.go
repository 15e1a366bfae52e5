package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Peers sends a body to POST path of another member and returns its answer, of at most limit bytes.
type Peers interface {
	Call(ctx context.Context, to node.ID, path string, body []byte, limit int64) ([]byte, error)
}

// Config is what every store needs of the cluster it is in. Registerer may be nil.
type Config struct {
	StateDir string           // for the table
	Members  func() []node.ID // the other members that have a master
	// Changed returns a channel that gets a value after changes of members, several at once perhaps.
	Changed func(ctx context.Context) <-chan struct{}
	Peers   Peers
	From    func(ctx context.Context) (node.ID, bool) // sender of a request to the handler
	// Hold, when not nil, is closed when this node has caught up (Pull): before, the peers would send it what it fetches.
	Hold       <-chan struct{}
	Now        func() time.Time // nil: time.Now
	Pace       Pace             // zero fields: the store's defaults
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Pace is how often a store does what all stores do, and its timeouts.
type Pace struct {
	Settle time.Duration // between changes of members and reading them
	Linger time.Duration // how long news wait for others
	Digest time.Duration // between digests; 5 min
	Save   time.Duration // between writes of the table
	Retry  time.Duration // first pause after a failed call, doubled up to RetryMax; 250 ms
	// RetryMax is the longest pause: a peer that is back lacks news until it is over.
	RetryMax time.Duration
	Call     time.Duration // timeout of one call; 30 s
}

// fill sets what is not set: to the store's values, and then to those that stores share.
func (p *Pace) fill(store Pace) {
	p.Settle = cmp.Or(p.Settle, store.Settle)
	p.Linger = cmp.Or(p.Linger, store.Linger)
	p.Digest = cmp.Or(p.Digest, store.Digest, 5*time.Minute)
	p.Save = cmp.Or(p.Save, store.Save, time.Second)
	p.Retry = cmp.Or(p.Retry, store.Retry, 250*time.Millisecond)
	p.RetryMax = cmp.Or(p.RetryMax, store.RetryMax, 2*time.Second)
	p.Call = cmp.Or(p.Call, store.Call, 30*time.Second)
}

// fill sets defaults, and refuses a configuration that lacks something.
func (c *Config) fill(name string, store Pace) error {
	switch {
	case c.StateDir == "":
		return errors.New(name + ": state directory must be set")
	case c.Members == nil || c.Changed == nil || c.Peers == nil || c.From == nil:
		return errors.New(name + ": members and peers must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Pace.fill(store)
	return nil
}

// Errors of tables.
var (
	// ErrNewer says that a newer version has written a table. A store that cannot do without it must not start.
	ErrNewer    = errors.New("it was written by a newer saltclusterd: start that version again")
	errTooLarge = errors.New("too large")
)

// CheckVersion compares the version in a table with the one that this program reads.
func CheckVersion(file string, got, reads int) error {
	switch {
	case got > reads:
		return fmt.Errorf("%w (%s: version %d, this one reads %d)", ErrNewer, file, got, reads)
	case got != reads:
		return fmt.Errorf("version %d, not %d", got, reads)
	}
	return nil
}
