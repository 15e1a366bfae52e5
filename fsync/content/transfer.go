package content

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// Hash names content.
type Hash = tree.Hash

// MaxServed is how many requests of peers are answered at a time.
const MaxServed = 6

// Peers reaches other members.
type Peers interface {
	// Members lists the others that have a master, the least loaded first.
	Members() []node.ID
	// Fetch posts a body to a member and returns its answer as it comes; an answer other than 200 is an error.
	Fetch(ctx context.Context, from node.ID, body []byte) (io.ReadCloser, error)
}

// Source is what this member has.
type Source interface {
	// Open returns a Reader for one answer.
	Open() Reader
	// Live is the root of what is live.
	Live() Hash
}

// Reader reads content for one goroutine.
type Reader interface {
	// Read returns content that is valid until the next call.
	Read(h Hash) ([]byte, error)
	Has(h Hash) bool
	Close()
}

// Config is what a Transfer needs.
type Config struct {
	Peers  Peers
	Source Source
	Stall  time.Duration // a peer that sends or reads nothing for so long is given up
	Logger *slog.Logger

	Fetched, Sent prometheus.Counter // bytes
	Failed        prometheus.Counter // requests
}

// Transfer fetches and serves content.
type Transfer struct {
	c      Config
	pack   packers
	served chan struct{} // has one for each answer under way
}

// New returns a Transfer; Close ends it.
func New(c Config) *Transfer { return &Transfer{c: c, served: make(chan struct{}, MaxServed)} }

// Close waits for answers under way, whose run has ended, and admits no other.
func (t *Transfer) Close() {
	for range MaxServed {
		t.served <- struct{}{}
	}
	t.pack.close()
}
