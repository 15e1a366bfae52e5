package masterlink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/signal"
)

const (
	// Heartbeat and HeartbeatTimeout detect within five seconds that the local master's process stands still. PINGs are
	// answered by its I/O thread, whatever Python is busy with.
	Heartbeat        = time.Second
	HeartbeatTimeout = 4 * time.Second

	// versionSettle lets a master that was just started use the machine for itself, before Python is started to ask it.
	versionSettle = 2 * time.Second
	// upgradeRetry is the pause after saltclusterd could not be renewed for another master, doubled up to maxUpgradeRetry.
	upgradeRetry    = 10 * time.Second
	maxUpgradeRetry = 5 * time.Minute
	// probeRetry is the pause between questions to a master that does not answer.
	probeRetry = 100 * time.Millisecond
	// actorsTimeout is how long the master's reactor may take to receive events once its workers answer.
	actorsTimeout = 10 * time.Second
	// flushTimeout is longer than the bus waits for a master's workers and its reactor.
	flushTimeout = 40 * time.Second
)

// Probe returns a request that every worker of every version answers at once (salt/master.py:ClearFuncs.ping).
func Probe() []byte {
	load := saltwire.AppendMapHeader(nil, 1)
	load = saltwire.AppendRaw(saltwire.AppendRaw(load, "cmd"), "ping")
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: load, Version: 3, HasVersion: true,
	})
}

// Bus is the master's event bus.
type Bus interface {
	Serves(localmaster.Version)
	AwaitActors(context.Context)
	Flush(context.Context) error
}

// Requester sends requests to the master's workers.
type Requester interface {
	Do(ctx context.Context, request []byte) ([]byte, error)
}

// WatchConfig is what a Watch needs.
type WatchConfig struct {
	Master  *localmaster.Config // as saltclusterd started with it
	Command string              // prints the version of the installed salt-master

	Bus     Bus
	Workers Requester
	Unfired func() uint64 // returns in the journal whose events have not been fired

	Upgrade func(context.Context, admin.Progress) error // another process of this program takes over
	Changed func()                                      // CheckVersion has another result
	Logger  *slog.Logger
}

// Watch follows restarts of the local master. When the master has another version or another key store than
// saltclusterd was started for, it has another process of this program take over.
type Watch struct {
	c       WatchConfig
	started chan struct{}
	newer   atomic.Pointer[string] // the master's version when that is another than the one served
}

// NewWatch returns a Watch. Its methods FollowVersion and FollowKeyStore run in the background.
func NewWatch(c WatchConfig) *Watch { return &Watch{c: c, started: make(chan struct{}, 1)} }

// NotifyStarted notes that the local master publishes again: it may have been started.
func (w *Watch) NotifyStarted() { signal.Send(w.started) }

// AwaitServing returns when the master acts on events as one that runs: its workers answer, its reactor listens, and
// the bus has its version. It returns earlier when ctx ends.
func (w *Watch) AwaitServing(ctx context.Context) {
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() { _, _ = w.askVersion(ctx) })
	w.awaitWorkers(ctx)
	ctx, cancel := context.WithTimeout(ctx, actorsTimeout)
	defer cancel()
	w.c.Bus.AwaitActors(ctx)
}

// askVersion asks the installed salt-master for its version, and passes it to the bus. A master that was just started
// has that version. After an error the bus stays as it is, because the master is the same one, most likely.
func (w *Watch) askVersion(ctx context.Context) (localmaster.Version, error) {
	v, err := localmaster.DetectVersion(ctx, w.c.Command)
	if err != nil {
		if ctx.Err() == nil {
			w.c.Logger.Warn("salt-master's version not known", "err", err)
		}
		return v, err
	}
	w.c.Bus.Serves(v)
	return v, nil
}

// awaitWorkers returns when one of the master's workers has answered, or ctx has ended.
func (w *Watch) awaitWorkers(ctx context.Context) {
	for probe := Probe(); ctx.Err() == nil; {
		if _, err := w.c.Workers.Do(ctx, probe); err == nil || !backoff.Sleep(ctx, probeRetry) {
			return
		}
	}
}

// FollowVersion asks the salt-master for its version whenever it was started, until ctx ends or another process takes
// over: an upgrade of Salt changes formats that several parts of saltclusterd were made for.
func (w *Watch) FollowVersion(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.started:
		}
		if !backoff.Sleep(ctx, versionSettle) {
			return
		}
		v, err := w.askVersion(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
		case v == w.c.Master.Version:
			w.newer.Store(nil)
		default:
			text := v.String()
			w.newer.Store(&text)
			w.c.Logger.Warn("salt-master has another version", "version", text, "before", w.c.Master.Version.String())
			w.c.Changed()
			w.flushEvents(ctx)
			if w.upgradeFor(ctx, v) {
				return
			}
		}
	}
}

// flushEvents returns when the master's bus has taken the events that waited for it while it was away. They wait for
// its workers and its reactor. A process that ends would fire them at once: they would be lost, or be fired once more
// by the next process, which finds them in the journal. A master whose workers do not answer yet loses nothing.
func (w *Watch) flushEvents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for w.c.Bus.Flush(ctx) != nil || w.c.Unfired() > 0 {
		if !backoff.Sleep(ctx, probeRetry) {
			return
		}
	}
}

// upgradeFor has another process of this program, which asks the master for its version, take over all connections. It
// retries until the master is started again, and returns whether the other process has taken over.
func (w *Watch) upgradeFor(ctx context.Context, v localmaster.Version) bool {
	if !v.Supported() {
		return false
	}
	pause := backoff.Backoff{Min: upgradeRetry, Max: maxUpgradeRetry}
	for {
		err := w.c.Upgrade(ctx, func(step, message string, _ ...int) {
			w.c.Logger.Debug("restarted for the salt-master's version", "step", step, "reason", message)
		})
		if err == nil {
			return true
		}
		w.c.Logger.Warn("not restarted for the salt-master's version", "version", v.String(), "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-w.started: // perhaps with another version
			w.NotifyStarted()
			return false
		case <-time.After(pause.Next()):
		}
	}
}

// CheckVersion warns while saltclusterd serves another version than the master has.
func (w *Watch) CheckVersion() health.Result {
	newer := w.newer.Load()
	if newer == nil {
		return fine
	}
	return health.Result{
		Level: health.Warn,
		Reason: fmt.Sprintf("the salt-master is %s now; saltclusterd still serves it as %s",
			*newer, w.c.Master.Version),
		Hint: "saltclusterd keeps trying to replace its process; its log says why that fails. Or: systemctl restart saltclusterd",
	}
}
