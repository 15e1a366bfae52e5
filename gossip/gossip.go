package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/signal"
)

// Port is what gossip needs of the peer port (*peer.Port).
type Port interface {
	Listener(proto string) (net.Listener, error)
	Dial(ctx context.Context, id node.ID, proto string) (net.Conn, error)
	Addr() netip.AddrPort
	Advertise() netip.AddrPort
}

// Roster is what gossip needs of the roster (peer.Roster). It must answer from memory and not call gossip.
type Roster interface {
	Lookup(id node.ID) (node.Entry, bool)
	Entries() []node.Entry
}

// Config is what a Gossip needs. ID, Port, Keys, Label and Roster are required.
type Config struct {
	ID   node.ID
	Port Port
	// udp address; zero: the port's, or its advertised one if that is local and the port's a wildcard
	Bind   netip.AddrPort
	Keys   [][]byte // AES-256 keys (32 bytes each), the first one encrypts
	Label  string   // the cluster's UUID
	Meta   func() node.Meta
	Roster Roster
	Timing Timing
	// ListenPacket gives the udp socket; nil: it is made.
	ListenPacket func(ctx context.Context, network, addr string) (net.PacketConn, error)
	Logger       *slog.Logger
	Registerer   prometheus.Registerer
}

// Timing of failure detection. Zero fields get the default: death is seen by the others after about 2.4 s.
type Timing struct {
	Probe        time.Duration // between two probes; 500 ms
	ProbeTimeout time.Duration // for an answer; 250 ms
	Suspicion    int           // probes a suspect has to speak up, times log(n); 3
	Gossip       time.Duration // between two rounds of news; 200 ms
	PushPull     time.Duration // between two exchanges of everything; 15 s
	Stream       time.Duration // bound for a stream; 5 s
	RejoinMin    time.Duration // first pause between attempts to reach a missing node; 500 ms
	RejoinMax    time.Duration // greatest pause; 15 s
	Leave        time.Duration // bound for waiting until a goodbye or new metadata is on its way; 500 ms
}

func (t Timing) withDefaults() Timing {
	for p, v := range map[*time.Duration]time.Duration{
		&t.Probe: 500 * time.Millisecond, &t.ProbeTimeout: 250 * time.Millisecond, &t.Gossip: 200 * time.Millisecond,
		&t.PushPull: 15 * time.Second, &t.Stream: 5 * time.Second, &t.RejoinMin: 500 * time.Millisecond,
		&t.RejoinMax: 15 * time.Second, &t.Leave: 500 * time.Millisecond,
	} {
		if *p <= 0 {
			*p = v
		}
	}
	if t.Suspicion <= 0 {
		t.Suspicion = 3
	}
	return t
}

// Gossip is a node's part in the gossip. See the package documentation.
type Gossip struct {
	cfg       Config
	log       *slog.Logger
	lines     *logWriter // memberlist's
	m         *metrics
	ring      *memberlist.Keyring
	ringMu    sync.Mutex
	table     *table
	udp       *net.UDPConn // nil before Bind, and when the transport has it
	transport *transport
	list      *memberlist.Memberlist
	metaDue   chan struct{} // capacity 1
	nudged    chan struct{} // capacity 1: look at the roster now

	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Gossip, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	cfg.Timing = cfg.Timing.withDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Meta == nil {
		cfg.Meta = func() node.Meta { return node.Meta{} }
	}
	ring, err := memberlist.NewKeyring(cfg.Keys[1:], cfg.Keys[0])
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	g := &Gossip{
		cfg: cfg, log: cfg.Logger, lines: newLogWriter(cfg.Logger), ring: ring,
		metaDue: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
	}
	g.table = newTable(cfg.ID, cfg.Roster, time.Now)
	g.m = newMetrics(cfg.Registerer, g.countAlive)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

func (c Config) validate() error {
	var errs []error
	if !c.ID.Valid() {
		errs = append(errs, fmt.Errorf("%w %q", node.ErrInvalidID, c.ID))
	}
	if c.Port == nil || c.Roster == nil {
		errs = append(errs, errors.New("a port and a roster are required"))
	}
	if c.Label == "" || len(c.Label) > memberlist.LabelMaxSize {
		errs = append(errs, errors.New("the label must be the cluster's UUID"))
	}
	return errors.Join(append(errs, checkKeys(c.Keys))...)
}

// Bind binds the udp socket; Open does it unless Bind was called before. The port must be bound.
func (g *Gossip) Bind(ctx context.Context) (err error) {
	if g.udp == nil {
		g.udp, err = bindUDP(ctx, g.cfg)
	}
	return err
}

// Open takes the gossip streams of the port and starts. The port must be open. Nodes on the roster are
// contacted on their own accord; seeds (ip:port of members) are tried first and may be empty. ctx bounds the opening
// only.
func (g *Gossip) Open(ctx context.Context, seeds []string) error {
	if err := g.Bind(ctx); err != nil {
		return fmt.Errorf("open gossip: %w", err)
	}
	t, err := newTransport(g.udp, g.cfg, g.m, g.ring.GetKeys)
	g.udp = nil
	if err != nil {
		return fmt.Errorf("open gossip: %w", err)
	}
	list, err := memberlist.Create(g.memberlistConfig(t))
	if err != nil {
		g.lines.close()
		return errors.Join(fmt.Errorf("open gossip: %w", err), t.Shutdown())
	}
	g.transport, g.list = t, list
	g.wg.Go(g.spreadMeta)
	g.wg.Go(func() { g.runRejoiner(seeds) })
	g.log.Info("gossip open", "addr", t.localAddr().String())
	return nil
}

func (g *Gossip) memberlistConfig(t *transport) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(g.cfg.ID)
	c.Transport = t
	c.Label = g.cfg.Label
	c.Keyring = g.ring
	c.AdvertiseAddr = g.cfg.Port.Advertise().Addr().String()
	c.AdvertisePort = int(g.cfg.Port.Advertise().Port())
	c.BindPort = c.AdvertisePort
	c.ProbeInterval, c.ProbeTimeout = g.cfg.Timing.Probe, g.cfg.Timing.ProbeTimeout
	c.SuspicionMult = g.cfg.Timing.Suspicion
	c.GossipInterval, c.PushPullInterval = g.cfg.Timing.Gossip, g.cfg.Timing.PushPull
	c.TCPTimeout = g.cfg.Timing.Stream
	c.RequireNodeNames = true
	c.DeadNodeReclaimTime = time.Second // which address is right is the roster's business, see events.NotifyAlive
	d := &delegate{g: g}
	c.Delegate, c.Events, c.Alive = d, d, d
	c.Logger = log.New(g.lines, "", 0)
	return c
}

// Close says goodbye, for at most Timing.Leave, and ends. The others see it gone at once; if Config.Meta had announced
// Draining they see it as left rather than dead.
func (g *Gossip) Close() error { return g.closeWith(true) }

// Hand ends without a goodbye: another process continues as this node.
func (g *Gossip) Hand() error { return g.closeWith(false) }

func (g *Gossip) closeWith(goodbye bool) error {
	g.closeOnce.Do(func() {
		g.cancel()
		if g.list == nil {
			if g.udp != nil { // never opened
				g.closeErr = g.udp.Close()
			}
			return
		}
		if goodbye {
			if err := g.list.Leave(g.cfg.Timing.Leave); err != nil {
				g.log.Debug("the departure was not acknowledged", "err", err) // the goodbye was not sent in time
			}
		}
		g.closeErr = g.list.Shutdown() // closes the transport, which ends running rejoins
		g.wg.Wait()
		g.lines.close()
	})
	return g.closeErr
}

// Done is closed when Close or Hand was called. Nothing else ends gossip: socket errors are retried.
func (g *Gossip) Done() <-chan struct{} { return g.ctx.Done() }

// Nudge looks at the roster now instead of within a second; call it when the roster has changed.
func (g *Gossip) Nudge() { signal.Send(g.nudged) }

// UpdateMeta spreads Config.Meta's new value. It does not block; calls in quick succession become one.
func (g *Gossip) UpdateMeta() { signal.Send(g.metaDue) }

// spreadMeta runs the updates, for memberlist waits until an update is on its way.
func (g *Gossip) spreadMeta() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.metaDue:
			if err := g.list.UpdateNode(g.cfg.Timing.Leave); err != nil {
				g.log.Debug("metadata is spreading slowly", "err", err)
			}
		}
	}
}
