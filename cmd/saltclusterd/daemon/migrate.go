package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// migration takes this node from a file system that masters share to its own. saltclusterctl migrate says when to do which step; what
// has been done is kept in state_dir, so that everything can be gone on with: also by another process, for the switch ends
// with an upgrade in place.
type migration struct {
	d    *Daemon
	path string

	oldMaster atomic.Bool // the salt-master has not been started since the configuration was changed

	mu     sync.Mutex
	st     unshare.State
	broken error // the state cannot be read
	busy   adminapi.MigrateStep
	doing  string
	byHand *adminapi.MigrateByHand
	err    error // of the last step
}

func newMigration(d *Daemon) *migration {
	g := &migration{d: d, path: filepath.Join(d.cfg.Paths.StateDir, "migration.json")}
	g.st, g.broken = unshare.ReadState(g.path)
	return g
}

// state is how far this node is.
func (g *migration) state() unshare.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.st
}

// change changes what is remembered, on disk first.
func (g *migration) change(f func(*unshare.State)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken != nil {
		return g.broken
	}
	st := g.st
	f(&st)
	if err := st.Save(g.path); err != nil {
		return err
	}
	g.st = st
	return nil
}

// say tells how far the step is.
func (g *migration) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doing = text
}

// ask tells what a person has to do; nil: nothing.
func (g *migration) ask(what *adminapi.MigrateByHand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if what != nil && g.byHand == nil && len(what.Commands) > 0 {
		g.d.log.Warn("the migration waits for the operator", "reason", what.Why, "cmd", what.Commands)
	}
	g.byHand = what
}

// begin runs a step in the background, one at a time. It ends when the membership does.
func (g *migration) begin(s *service, step adminapi.MigrateStep, do func(context.Context) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.broken != nil:
		return g.broken
	case g.busy != "":
		return adminapi.Errorf(adminapi.CodeBusy, "saltclusterctl migrate --status shows how far it is", "%s is at work: %s", g.d.id, g.busy)
	}
	g.busy, g.doing, g.byHand, g.err = step, "", nil, nil
	s.wg.Go(func() {
		err := do(s.ctx)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.busy, g.doing, g.byHand, g.err = "", "", nil, err
		if err != nil && s.ctx.Err() == nil {
			g.d.log.Error("migration to an own file system", "op", string(step), "err", err)
		}
	})
	return nil
}

// standsIn says whether this node replicates what is on the share, towards those that have left it.
func (d *Daemon) standsIn() bool { return d.shares() && d.migration.state().StandIn }

// leftToShare says that nobody but the masters themselves sees to a path: it is on the share, and another node stands for that.
func (d *Daemon) leftToShare(path string) bool { return !d.standsIn() && d.onShare(path) }

// repair undoes a switch that this process, which begins anew, finds half done: the daemon's own configuration comes last.
func (g *migration) repair() error {
	if g.broken != nil {
		return g.broken
	}
	if g.st.Stage != unshare.Switching || g.d.cfg.Cluster.IsolatedFilesystem {
		return nil
	}
	g.d.log.Warn("a switch to an own file system was cut off: it is undone", "path", g.path)
	return g.undo()
}

// undo takes back what a switch has changed on disk.
func (g *migration) undo() error {
	st := g.state()
	var errs []error
	for _, f := range st.Files {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, t := range st.Plan.Trees {
		if t.Link != "" {
			errs = append(errs, unshare.Restore(t))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("undo the switch: %w", err)
	}
	return g.change(func(st *unshare.State) { st.Stage, st.Switched, st.Files = unshare.Copied, time.Time{}, nil })
}

// masterStarted is when the local master was started: it makes its sockets and its pid file anew then.
func (d *Daemon) masterStarted() (at time.Time) {
	for _, name := range []string{
		filepath.Join(d.master.SockDir, "master_event_pull.ipc"), filepath.Join(d.master.SockDir, "publish_pull.ipc"),
		d.master.Text("pidfile"),
	} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// noteMaster finds out whether the master still works with the configuration of before.
func (g *migration) noteMaster() bool {
	st := g.state()
	old := !st.Switched.IsZero() && !g.d.masterStarted().After(st.Switched)
	g.oldMaster.Store(old)
	return old
}

// check warns while the salt-master works on the share and saltclusterd does not, or the other way round.
func (g *migration) check() (health.Result, bool) {
	switch {
	case g.broken != nil:
		return health.Result{Level: health.Warn, Reason: g.broken.Error(), Hint: "see " + g.path}, true
	case g.oldMaster.Load():
		return health.Result{
			Level:  health.Warn,
			Reason: "the salt-master still works with the configuration of before the migration; others do its work",
			Hint:   "restart it: systemctl restart salt-master",
		}, true
	}
	return fine, false
}
