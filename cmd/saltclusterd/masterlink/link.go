package masterlink

import (
	"context"
	"log/slog"
	"math/bits"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/upstream"
	"saltclusterd/signal"
)

// signInRetry is the pause after a sign-in at the local master that failed.
const signInRetry = 2 * time.Second

// LinkConfig configures a Link.
type LinkConfig struct {
	Options  *config.Config
	Master   *localmaster.Config // as saltclusterd started with it
	KeyStore KeyStore
	HiddenID string // the id under which saltclusterd signs in; empty: the usual one
	Public   string // clean text of the cluster's public key
	// ReadKey reads one of the master's own keys where a master of a configuration reads it.
	ReadKey func(of *localmaster.Config, name string) ([]byte, error)
	// Deliver gets the publications of the master. Unfired is how many returns its bus still has to take.
	Deliver func(fanout.Publication) error
	Unfired func() uint64
	// Upgrade renews this program for another version or key store of the master.
	Upgrade func(context.Context, admin.Progress) error

	Latest         func(*localmaster.Config)                // the master has started with this configuration
	Reread         func(now *localmaster.Config, err error) // the result of FollowedOptions.Reread
	VersionChanged func()                                   // Watch.CheckVersion has another result
	OptionsChanged func()                                   // FollowedOptions.Check has another result
	Restarted      func()                                   // the master has (re)appeared, or has resumed
	Connected      func()                                   // it publishes again; Restarted was called
	SignInChanged  func()                                   // whether saltclusterd is signed in may have changed
	Logger         *slog.Logger
	Registerer     prometheus.Registerer
}

// Link are the connections to the local master, and what depends on its restarts.
type Link struct {
	Requests     *upstream.ReqClient
	Publications *upstream.SubClient
	Bus          *eventbus.Bus
	Sessions     *localmaster.Sessions
	Intake       *sidecar.Intake
	Umask        *Umask
	Watch        *Watch
	Followed     *FollowedOptions
	Log          *saltlog.Log // what a stock master logs

	cfg     LinkConfig
	restart chan struct{} // has a token when the master may have a new key
}

// NewLink returns the connections, which are not open yet. Publications are taken in until ctx ends.
func NewLink(ctx context.Context, cfg LinkConfig) (*Link, error) {
	salt, stateDir := cfg.Options.Salt, cfg.Options.Paths.StateDir
	l := &Link{
		cfg: cfg, restart: make(chan struct{}, 1), Umask: NewUmask(cfg.Master, filepath.Join(stateDir, "umask"), cfg.Logger),
	}
	l.Requests = upstream.NewReqClient(upstream.ReqConfig{
		Addr: cfg.Master.ReqAddr(), MaxConns: salt.UpstreamConnections, Timeout: salt.ForwardTimeout,
		PerSender: cfg.Options.Edge.MinionRequestsAtOnce, PerWaiter: waitersOf(cfg.Master.Workers()),
		Workers: cfg.Master.Workers(), Heartbeat: Heartbeat, HeartbeatTimeout: HeartbeatTimeout, Probe: Probe(),
		StuckAfter: salt.StuckAfter, BusyAtMost: sidecar.LongTimeout(salt.ForwardTimeout),
		OnUp: l.notifyRestarted, Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	l.Bus = eventbus.New(cfg.Master, eventbus.Options{
		FireOnly: len(cfg.Options.Events.Mirror) == 0, Serving: func(ctx context.Context) { l.Watch.AwaitServing(ctx) },
		Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	l.Watch = NewWatch(WatchConfig{
		Master: cfg.Master, Command: salt.MasterCommand, Bus: l.Bus, Workers: l.Requests, Unfired: cfg.Unfired,
		Upgrade: cfg.Upgrade, Changed: cfg.VersionChanged, Logger: cfg.Logger,
	})
	hidden := localmaster.NewHidden(cfg.Master, localmaster.HiddenOptions{
		ID: cfg.HiddenID, KeyDir: filepath.Join(stateDir, "hidden"), Requester: l.Requests,
		Place: cfg.KeyStore.PlaceHidden, Logger: cfg.Logger,
	})
	so, err := localmaster.SessionsOf(cfg.Master)
	if err != nil {
		return nil, err
	}
	so.Logger = cfg.Logger
	l.Sessions = localmaster.NewSessions(so)
	l.Intake = sidecar.NewIntake(sidecar.IntakeConfig{
		SignIn: hidden, ClusterPub: cfg.Public, Deliver: cfg.Deliver, Logger: cfg.Logger,
	})
	l.Publications = upstream.NewSubClient(upstream.SubConfig{
		Addr: cfg.Master.PubAddr(), OnMessage: func(parts [][]byte) { l.Intake.Message(ctx, parts) },
		Heartbeat: Heartbeat, HeartbeatTimeout: HeartbeatTimeout,
		OnConnect: l.notifyConnected, Logger: cfg.Logger, Registerer: cfg.Registerer,
	})
	l.Followed = NewFollowedOptions(FollowedConfig{
		Master: cfg.Master, Path: salt.Config, Public: cfg.Public, ReadKey: cfg.ReadKey,
		Latest: cfg.Latest, Changed: cfg.OptionsChanged, Logger: cfg.Logger,
	})
	l.Log = saltlog.New(cfg.Logger, func() bool { return l.Followed.Load().Informs })
	return l, l.Followed.Use(cfg.Master)
}

// waitersOf is how many of its workers one minion may have wait for others: half of them. One that waits for a job of
// its own, which again has one wait, ends with two.
func waitersOf(workers int) int { return max(1, workers/2) }

// notifyConnected notes that the master publishes again: it may have been started.
func (l *Link) notifyConnected() {
	l.notifyRestarted()
	l.cfg.Connected()
	l.Watch.NotifyStarted()
}

// notifyRestarted notes that the master has (re)appeared, or has resumed after it stood still. It may be another
// process, with a new AES key and workers that have forgotten all sessions.
func (l *Link) notifyRestarted() {
	l.Sessions.Reset()
	l.Umask.NotifyStarted()
	l.cfg.Restarted()
	signal.Send(l.restart)
}

// KeepSignedIn reads the master's options and learns its key whenever they may have changed, so that the first
// publication does not wait, until ctx ends.
func (l *Link) KeepSignedIn(ctx context.Context) {
	logged := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.restart:
		}
		l.RereadOptions()
		for l.Requests.Up() {
			err := l.Intake.Learn(ctx)
			l.cfg.SignInChanged()
			if err == nil {
				logged = ""
				l.cfg.Logger.Info("signed in at the local master")
				break
			}
			if text := err.Error(); text != logged { // it may need an operator, and is tried every two seconds
				logged = text
				l.cfg.Logger.Warn("not signed in at the local master", "err", err)
			}
			if !backoff.Sleep(ctx, signInRetry) {
				return
			}
		}
	}
}

// Config is the configuration as the master has read it, that of saltclusterd's start until another one was read.
func (l *Link) Config() *localmaster.Config { return l.Followed.Load().From }

// HasSyndics says that the master has started with order_masters: syndics may be below it.
func (l *Link) HasSyndics() bool { return l.Config().Bool("order_masters") }

// PubSigner returns what signs a public key for minions, or nil when the options do not ask for signatures.
func (l *Link) PubSigner(options *localmaster.Config, public string) (signin.PubSigner, error) {
	return ReadPubSigner(l.cfg.ReadKey, options, public)
}

// RereadOptions follows the options of the master.
func (l *Link) RereadOptions() { l.cfg.Reread(l.Followed.Reread()) }

// NotifySignIn logs and fires what a stock master does for a sign-in it accepts (salt/channel/server.py _auth).
func (l *Link) NotifySignIn(ctx context.Context, a saltwire.AuthRequest) {
	l.Log.SignIn(a.ID)
	options := l.Followed.Load()
	if !options.AuthEvents {
		return
	}
	if err := l.Bus.FireAuth(ctx, options.SignInEvent(a)); err != nil {
		l.cfg.Logger.Warn("event not fired", "minion", a.ID, "err", err)
	}
}

// Load is how many requests the master is working on, for other members to compare: the next power of two, lest every
// request make this node report something new to all others.
func (l *Link) Load() uint32 {
	st := l.Requests.Stats()
	busy := uint32(max(st.Conns-st.Idle, 0) + st.Waiting)
	if busy == 0 {
		return 0
	}
	return 1 << bits.Len32(busy-1)
}

// LeaveSessions gives the master the keys that its minions have, when minions will reach it directly after its next
// start (saltclusterctl leave). Otherwise each of them would have to sign in once more.
func (l *Link) LeaveSessions() error {
	was := l.cfg.Master
	now, err := localmaster.LoadConfig(was.Path, was.Version)
	if err != nil {
		return nil //nolint:nilerr // a master does not start with such a configuration
	}
	before, ok := was.InterfaceAddr()
	after, ok2 := now.InterfaceAddr()
	if !ok || !ok2 || !before.IsLoopback() || after.IsLoopback() {
		return nil
	}
	return l.Sessions.Leave()
}
