package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/statuspage"
)

// Daemon is one saltclusterd.
type Daemon struct {
	cfg      *config.Config
	id       node.ID
	log      *slog.Logger
	reg      *registry
	version  string
	started  time.Time
	master   *localmaster.Config
	identity *peer.Identity
	checks   *health.Checker
	behind   operator.BehindGate
	doors    []door             // what load balancers and operators talk to
	series   *statuspage.Series // what the page shows over time; nil: without a page
	sockets  *takeover.Sockets
	upgrader *takeover.Upgrader

	patience context.Context    // ends when a stop shall wait for nothing any more
	hurry    context.CancelFunc // ends it

	aloneAfter    time.Duration // recovery.AloneConfig.MajorityTimeout; tests
	formerEvery   time.Duration // recovery.FormerConfig.Interval; tests
	clockInterval time.Duration // see package clocks

	wall func() time.Time // the clock of this host

	migration *migration.Host
	logLevels *operator.LogLevel
	node      *operator.Node
	inspector *masterlink.Inspector // of the master beside this node

	op      operations
	joiner  *joining.Joiner
	contact *recovery.Contact

	mu     sync.Mutex
	member *member       // nil while this node belongs to no cluster
	joined chan struct{} // closed when a membership was written
}

// New checks the configuration; it touches nothing.
func New(cfg *config.Config, version string, log *slog.Logger) (*Daemon, error) {
	id, err := node.ParseID(cfg.ID)
	if err != nil {
		return nil, fmt.Errorf("option id: %w", err)
	}
	reg := newRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBuildInfo(version))
	patience, hurry := context.WithCancel(context.Background())
	d := &Daemon{
		clockInterval: clocks.Interval, wall: time.Now,
		patience: patience, hurry: hurry, cfg: cfg, id: id, log: log, reg: reg, version: version, started: time.Now(),
		joined: make(chan struct{}), op: make(operations, 1), sockets: takeover.NewSockets(),
	}
	d.upgrader = d.newUpgrader()
	d.migration = d.newMigration()
	d.logLevels = operator.NewLogLevel(cfg.Log.Level, log)
	d.joiner = d.newJoiner()
	d.contact = d.newContact()
	d.inspector = d.newInspector()
	d.checks = d.newChecks()
	d.node = d.newNode()
	return d, nil
}

// Hurry cuts the drain of a stop short.
func (d *Daemon) Hurry() { d.hurry() }

// closer is a part that has been opened.
type closer interface{ Close() error }

// Run runs the daemon until ctx ends or a part fails. ready is called when the admin socket answers.
func (d *Daemon) Run(ctx context.Context, ready func()) (err error) {
	if d.upgrader.TakesOver() {
		return d.takeOver(ctx, ready)
	}
	var open []closer
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i].Close())
		}
	}()
	if err := d.openHost(ctx, &open); err != nil {
		return err
	}
	ready()
	return d.loop(ctx)
}

// loop lives one membership after the other, until ctx ends or a part fails.
func (d *Daemon) loop(ctx context.Context) error {
	for {
		m, err := d.awaitMembership(ctx)
		if err != nil || m == nil {
			return err
		}
		if again, err := d.live(ctx, m); !again {
			return err
		}
	}
}

// openHost opens what a node has without a cluster.
func (d *Daemon) openHost(ctx context.Context, open *[]closer) error {
	for _, dir := range []string{d.cfg.Paths.StateDir, d.cfg.Paths.RunDir, d.cfg.Cluster.PKIDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	lock, err := lockDir(d.cfg.Paths.StateDir)
	if err != nil {
		return err
	}
	*open = append(*open, lock)
	d.sockets.Keep(takeover.LockName, lock.f)
	if err := d.migration.Repair(); err != nil {
		d.log.Error("migration to an own file system", "err", err)
	}
	if err := d.readHost(ctx); err != nil {
		return err
	}
	if err := d.bindDoors(ctx); err != nil {
		return err
	}
	return d.openDoors(ctx, open)
}

// readHost reads who this node is and what master is beside it.
func (d *Daemon) readHost(ctx context.Context) (err error) {
	if d.identity, err = peer.LoadIdentity(d.cfg.Paths.StateDir, d.id); err != nil {
		return fmt.Errorf("node identity: %w", err)
	}
	if d.witness() {
		return nil
	}
	if err := d.checkRSA(); err != nil {
		return err
	}
	return d.readMaster(ctx)
}

// readMaster reads the configuration of the stock master beside us, as Salt of the installed version reads it.
func (d *Daemon) readMaster(ctx context.Context) error {
	v, err := localmaster.DetectVersion(ctx, d.cfg.Salt.MasterCommand)
	if err != nil {
		return fmt.Errorf("ask %s for its version (option salt_master_command): %w", d.cfg.Salt.MasterCommand, err)
	}
	if !v.Supported() {
		return fmt.Errorf("salt %s is not supported: 3006, 3007 and 3008 are", v)
	}
	d.master, err = localmaster.LoadConfig(d.cfg.Salt.Config, v)
	if errors.Is(err, fs.ErrPermission) {
		return unreadable(err)
	} else if err != nil {
		return fmt.Errorf("read the master's configuration (option salt_config): %w", err)
	}
	pub, req := d.cfg.EdgeAddresses(localAddrs())
	if addr, ok := d.master.InterfaceAddr(); ok {
		listens := config.Listens{Interface: addr, PublishPort: d.master.PublishPort, RetPort: d.master.RetPort}
		if err := d.cfg.ValidateMaster(listens, append(pub, req...)...); err != nil {
			d.log.Error("salt-master and saltclusterd want the same ports", "err", err)
		}
	}
	d.inspector.LogFindings()
	return nil
}

// awaitMembership returns the membership of this node as soon as there is one, nil when ctx ends first.
func (d *Daemon) awaitMembership(ctx context.Context) (*membership.Record, error) {
	m, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil || m != nil {
		return m, d.checkMembership(m, err)
	}
	left, err := membership.ReadRemoval(d.cfg.Paths.StateDir)
	if err != nil {
		return nil, err
	}
	if left != nil {
		d.log.Warn("this node waits to be taken in again: saltclusterctl join PEER", "reason", left.Sentence())
	} else {
		d.log.Info("this node belongs to no cluster yet: run saltclusterctl bootstrap, or join")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(d.cfg.Cluster.Peers) > 0 && left == nil { // a removed node does not rejoin on its own
		wg.Go(func() { d.joiner.JoinPeers(ctx) })
	}
	select {
	case <-ctx.Done():
		return nil, nil
	case r := <-d.upgrader.Restarts():
		return nil, r
	case <-d.joining():
		m, err := membership.ReadRecord(d.cfg.Paths.StateDir)
		return m, d.checkMembership(m, err)
	}
}

// checkMembership refuses to run with a state that belongs to something else than the configuration names.
func (d *Daemon) checkMembership(m *membership.Record, err error) error {
	switch {
	case err != nil:
		return err
	case m.Node != d.id:
		return fmt.Errorf("%s belongs to the node %q, but the option id is %q: give it back its name, or use another state_dir",
			d.cfg.Paths.StateDir, m.Node, d.id)
	case m.Witness != d.witness():
		return fmt.Errorf("this node became a member when cluster_witness was %t, but the option is %t: remove it from the cluster, "+
			"empty %s and join again", m.Witness, d.witness(), d.cfg.Paths.StateDir)
	case m.ClusterID != d.cfg.Cluster.ID:
		return fmt.Errorf("this node is a member of the cluster %q, but the option cluster_id is %q", m.ClusterID,
			d.cfg.Cluster.ID)
	}
	return nil
}

// joining is closed when a membership was written.
func (d *Daemon) joining() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.joined
}

// settled tells Run that a membership was written.
func (d *Daemon) settled() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.joined:
	default:
		close(d.joined)
	}
}

// current returns the running membership, nil when there is none.
func (d *Daemon) current() *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.member
}
