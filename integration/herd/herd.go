package herd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// Config says what a herd is and whom it talks to.
type Config struct {
	Host     string // address of the master, node or load balancer
	ReqPort  int    // 0: 4506
	Dial     Dialer // nil: from this process's own network
	Profiles []Profile
	Minions  int
	Prefix   string // ids are this and a number; empty: "herd"
	Key      Key    // of all of them; nil: a new FastKey

	AtATime  int  // first sign-ins under way at a time; 0: 32
	Announce bool // send start events, register resources
	// keep the request connection, as stock minions do; false: one per request, which suits a small limit of open files
	KeepRequests bool
	Think        time.Duration // a job takes up to that long
}

// Herd is minions.
type Herd struct {
	cfg     Config
	host    string
	reqAddr string
	all     []*minion
	stats   *counters
	turns   chan struct{}

	mu      sync.Mutex
	master  *saltcrypt.PublicKey
	wallets map[saltcrypt.Key]*wallet

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// maxMinions bounds a herd; a process has some ten thousand connections.
const maxMinions = 50_000

// New returns a herd that has not started. Minion number n is of the version of Profiles[n modulo their number].
func New(cfg Config) (*Herd, error) {
	switch {
	case cfg.Minions < 1 || cfg.Minions > maxMinions:
		return nil, fmt.Errorf("a herd of %d: want 1 to %d", cfg.Minions, maxMinions)
	case cfg.Host == "":
		return nil, errors.New("a herd needs an address")
	case len(cfg.Profiles) == 0:
		return nil, errors.New("a herd needs a profile")
	}
	cfg = cfg.withDefaults()
	if cfg.Key == nil {
		key, err := NewFastKey()
		if err != nil {
			return nil, err
		}
		cfg.Key = key
	}
	who, err := NewIdentity("", cfg.Key)
	if err != nil {
		return nil, err
	}
	h := &Herd{
		cfg: cfg, host: cfg.Host, reqAddr: net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.ReqPort)),
		stats: newCounters(cfg.Minions), turns: make(chan struct{}, cfg.AtATime), wallets: map[saltcrypt.Key]*wallet{},
	}
	for i, id := range cfg.IDs() {
		h.all = append(h.all, &minion{herd: h, index: i, profile: cfg.Profiles[i%len(cfg.Profiles)], who: who.named(id)})
	}
	return h, nil
}

func (c Config) withDefaults() Config {
	if c.ReqPort == 0 {
		c.ReqPort = 4506
	}
	if c.AtATime == 0 {
		c.AtATime = 32
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}
	}
	return c
}

// IDs are the names of the herd's minions.
func (c Config) IDs() []string {
	prefix := c.Prefix
	if prefix == "" {
		prefix = "herd"
	}
	ids := make([]string, c.Minions)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return ids
}

// Key is the key pair of all minions.
func (h *Herd) Key() Key { return h.cfg.Key }

// IDs are the minions' names.
func (h *Herd) IDs() []string { return h.cfg.IDs() }

// Open starts all minions; they live until Close, not until ctx ends. See Stats for how far they are.
func (h *Herd) Open(ctx context.Context) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	for _, m := range h.all {
		h.wg.Go(func() { m.run(run) })
	}
}

// Close ends all minions and waits for them.
func (h *Herd) Close() error {
	if h.cancel != nil {
		h.cancel()
	}
	h.wg.Wait()
	return nil
}

// enter waits for a first minion's turn.
func (h *Herd) enter(ctx context.Context) bool {
	select {
	case h.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *Herd) leave() { <-h.turns }
