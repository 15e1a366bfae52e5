package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/metrics"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/statuspage"
)

// Daemon is one saltclusterd.
type Daemon struct {
	cfg     *config.Config
	id      node.ID
	log     *slog.Logger
	reg     *metrics.Registry
	version string
	host
	front
	timing

	tenure    *lifecycle.Tenure[member]
	sockets   *takeover.Sockets
	upgrader  *takeover.Upgrader
	migration *migration.Host
	op        membership.Operations
	joiner    *joining.Joiner
	contact   *recovery.Contact

	graceful context.Context    // ends when a stop shall wait for nothing any more
	endGrace context.CancelFunc // ends it
}

// host is what readHost reads.
type host struct {
	identity *peer.Identity
	master   *localmaster.Config // nil on a witness
}

// front is what load balancers and operators see of a daemon, with or without a cluster.
type front struct {
	checks    *health.Checker
	behind    operator.BehindGate
	node      *operator.Node
	inspector *masterlink.Inspector // of the master beside this node
	logLevels *operator.LogLevel
	doors     []door
	series    *statuspage.Series // what the page shows over time; nil: without a page
}

// timing is what tests change.
type timing struct {
	aloneAfter    time.Duration    // recovery.AloneConfig.MajorityTimeout
	formerEvery   time.Duration    // recovery.FormerConfig.Interval
	clockInterval time.Duration    // clocks.Config.Interval
	wall          func() time.Time // the clock of this host
}

// New checks the configuration; it touches nothing.
func New(cfg *config.Config, version string, log *slog.Logger) (*Daemon, error) {
	id, err := node.ParseID(cfg.ID)
	if err != nil {
		return nil, fmt.Errorf("option id: %w", err)
	}
	graceful, endGrace := context.WithCancel(context.Background())
	d := &Daemon{
		cfg: cfg, id: id, log: log, reg: metrics.NewRegistry(version), version: version,
		graceful: graceful, endGrace: endGrace, tenure: lifecycle.NewTenure[member](),
		timing:  timing{clockInterval: clocks.Interval, wall: time.Now},
		sockets: takeover.NewSockets(), op: membership.NewOperations(),
		contact: &recovery.Contact{StateDir: cfg.Paths.StateDir, Limit: cfg.Cluster.AloneLimit, Logger: log},
	}
	d.upgrader = d.newUpgrader()
	d.migration = migration.New(migration.Config{
		Node: id, Shared: d.shares(), Options: cfg, Master: d.readOptions, Logger: log,
	})
	d.joiner = d.newJoiner()
	d.logLevels = operator.NewLogLevel(cfg.Log.Level, log)
	d.inspector = masterlink.NewInspector(masterlink.InspectorConfig{
		Master: d.readOptions, Shared: d.shares(), EveryMaster: cfg.Events.EveryMaster,
		CompareRoots: cfg.Roots.Sync != config.RootsOff && !d.shares(), Logger: log,
	})
	d.checks = d.newChecks()
	d.node = operator.NewNode(operator.NodeConfig{
		Self: id, Version: version, Started: time.Now(), Master: d.readOptions, Options: cfg.Show, Checks: d.checks,
		Findings: d.inspector.Findings, Absence: d.absence, JoinProblem: d.joiner.Problem,
		Of: func() *operator.Cluster {
			if m := d.tenure.Current(); m != nil {
				return m.reports
			}
			return nil
		},
	})
	return d, nil
}

// SetLogLevelVar gives operators the level of the process's logger.
func (d *Daemon) SetLogLevelVar(level *slog.LevelVar) { d.logLevels.Control(level) }

// EndGrace cuts the drain of a stop short.
func (d *Daemon) EndGrace() { d.endGrace() }

// Run runs the daemon until ctx ends or a part fails. ready is called when the admin socket answers.
func (d *Daemon) Run(ctx context.Context, ready func()) (err error) {
	var next *successor
	if d.upgrader.TakesOver() {
		if next, err = d.newSuccessor(); err != nil {
			return err
		}
		defer next.side.Close()
	}
	var open []io.Closer
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i].Close())
		}
	}()
	if next != nil {
		if again, err := d.afterEnding(next.serve(ctx, &open, ready)); !again {
			return err
		}
		return d.loop(ctx)
	}
	if err := d.openHost(ctx, &open); err != nil {
		return err
	}
	ready()
	return d.loop(ctx)
}

// loop lives one membership after the other, until ctx ends or a part fails.
func (d *Daemon) loop(ctx context.Context) error {
	for {
		record, err := d.awaitMembership(ctx)
		if err != nil || record == nil {
			return err
		}
		if again, err := d.afterEnding(d.serveMember(ctx, record)); !again {
			return err
		}
	}
}

// openHost opens what a node has without a cluster.
func (d *Daemon) openHost(ctx context.Context, open *[]io.Closer) error {
	for _, dir := range []string{d.cfg.Paths.StateDir, d.cfg.Paths.RunDir, d.cfg.Cluster.PKIDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	lock, err := takeover.LockDir(d.cfg.Paths.StateDir)
	if err != nil {
		return err
	}
	*open = append(*open, lock)
	d.sockets.Keep(takeover.LockName, lock)
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

// awaitMembership returns the membership of this node as soon as there is one, nil when ctx ends first.
func (d *Daemon) awaitMembership(ctx context.Context) (*membership.Record, error) {
	if record, err := d.readRecord(); err != nil || record != nil {
		return record, err
	}
	left, err := membership.ReadRemoval(d.cfg.Paths.StateDir)
	if err != nil {
		return nil, err
	}
	if left != nil {
		d.log.Warn("this node has to join again: saltclusterctl join PEER", "reason", left.Sentence())
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
	case <-d.tenure.Joined():
		return d.readRecord()
	}
}

// readRecord reads the membership of this node, nil without one. It refuses one that belongs to something else than the
// configuration names.
func (d *Daemon) readRecord() (*membership.Record, error) {
	record, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil || record == nil {
		return nil, err
	}
	return record, record.Validate(d.cfg)
}

// ending is why a membership ends while the daemon keeps running. after is called when all parts are closed.
type ending struct {
	reason string
	after  func() error
}

func (e *ending) Error() string { return e.reason }

// afterEnding carries out what the end of a membership asks for; again says whether the daemon keeps running.
func (d *Daemon) afterEnding(err error) (again bool, _ error) {
	var end *ending
	if !errors.As(err, &end) {
		return false, err
	}
	if err := end.after(); err != nil {
		return false, err
	}
	return true, nil
}

// serveMember opens a membership, serves until ctx ends, a part fails or it ends by an ending, and closes it.
func (d *Daemon) serveMember(ctx context.Context, record *membership.Record) (err error) {
	d.reg.Renew()
	m, err := d.newMember(record)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, m.Close())
		d.tenure.Set(nil)
	}()
	if err := m.Open(ctx); err != nil {
		return err
	}
	d.checks.SetDraining(false) // a membership before this one set it
	d.tenure.Set(m)
	d.checks.Kick() // they have looked at a node without a cluster
	d.upgrader.EndForRestart(m.Fail)
	return d.upgrader.Finish(ctx, m.Serve(ctx, m.role.Open))
}

// lostLog ends the membership of a node without its consensus log.
func (d *Daemon) lostLog(what string) error {
	reason := removal.DescribeLostLog(what, d.id)
	d.log.Error("this node is no longer a member", "node", d.id, "reason", reason)
	return d.endForGood(reason)
}

// endForGood ends a membership and makes this node one that was removed.
func (d *Daemon) endForGood(reason string) error {
	return &ending{reason, func() error {
		r, err := membership.ReadRecord(d.cfg.Paths.StateDir)
		if err != nil || r == nil {
			return err
		}
		if err := r.End(d.cfg.Paths.StateDir, reason); err != nil {
			return err
		}
		d.tenure.AwaitJoin()
		return nil
	}}
}
