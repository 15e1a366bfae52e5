package migration

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/unshare"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// Config is what a Host needs.
type Config struct {
	Node    node.ID
	Shared  bool // by its configuration this process shares a file system
	Options *config.Config
	Master  func() *localmaster.Config // the master's configuration, as this process works with it
	Logger  *slog.Logger
}

// Host is the migration of this node: its state and its files, with or without a cluster.
type Host struct {
	c    Config
	path string // of the state

	oldMaster atomic.Bool // the salt-master has not been started since the configuration was changed

	mu     sync.Mutex // guards what follows
	st     unshare.State
	broken error                   // the state cannot be read
	busy   adminapi.MigrateStep    // the step that runs; empty: none
	doing  string                  // how far it is
	byHand *adminapi.MigrateByHand // what it waits for
	err    error                   // of the last step
}

// New returns the migration as the node's state_dir has it. A state that cannot be read is an error of every step.
func New(c Config) *Host {
	h := &Host{c: c, path: filepath.Join(c.Options.Paths.StateDir, "migration.json")}
	h.st, h.broken = unshare.ReadState(h.path)
	return h
}

// State returns how far this node is.
func (h *Host) State() unshare.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.st
}

// StandsIn says whether this node replicates what is on the share, towards the nodes that have left it.
func (h *Host) StandsIn() bool { return h.c.Shared && h.State().StandIn }

// changeState changes the state, on disk first.
func (h *Host) changeState(change func(*unshare.State)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken != nil {
		return h.broken
	}
	st := h.st
	change(&st)
	if err := st.Save(h.path); err != nil {
		return err
	}
	h.st = st
	return nil
}

// setDoing notes how far the step is.
func (h *Host) setDoing(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doing = text
}

// progress is setDoing as admin.Progress.
func (h *Host) progress(_, message string, _ ...int) { h.setDoing(message) }

// setByHand notes what an operator has to do; nil: nothing.
func (h *Host) setByHand(request *adminapi.MigrateByHand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if request != nil && h.byHand == nil && len(request.Commands) > 0 {
		h.c.Logger.Warn("the migration waits for the operator", "reason", request.Why, "hint", request.Commands)
	}
	h.byHand = request
}

// lockStep marks the migration as busy with a step, which unlockStep ends.
func (h *Host) lockStep(step adminapi.MigrateStep) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.broken != nil:
		return h.broken
	case h.busy != "":
		return adminapi.Errorf(adminapi.CodeBusy, "saltclusterctl migrate status shows its progress",
			"%s is running: %s", h.c.Node, h.busy)
	}
	h.busy, h.doing, h.byHand, h.err = step, "", nil, nil
	return nil
}

// unlockStep keeps the outcome of the step.
func (h *Host) unlockStep(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.doing, h.byHand, h.err = "", "", nil, err
}

// Repair undoes a switch that the process before this one left half done. A switch whose last file, the daemon's own
// configuration, has been written is not undone.
func (h *Host) Repair() error {
	if h.broken != nil {
		return h.broken
	}
	if h.State().Stage != unshare.Switching || h.c.Options.Cluster.IsolatedFilesystem {
		return nil
	}
	h.c.Logger.Warn("a switch to the node's own file system was interrupted and is undone", "path", h.path)
	return h.undoSwitch()
}

// undoSwitch takes back what a switch has changed on disk.
func (h *Host) undoSwitch() error {
	st := h.State()
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
	return h.changeState(func(st *unshare.State) { st.Stage, st.Switched, st.Files = unshare.Copied, time.Time{}, nil })
}

// masterStarted returns when the local master was started: it makes its sockets and its pid file anew then.
func (h *Host) masterStarted() (at time.Time) {
	master := h.c.Master()
	for _, name := range []string{
		filepath.Join(master.SockDir, "master_event_pull.ipc"), filepath.Join(master.SockDir, "publish_pull.ipc"),
		master.Text("pidfile"),
	} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// CheckMaster finds out whether the master still works with the configuration of before the switch.
func (h *Host) CheckMaster() (outdated bool) {
	st := h.State()
	outdated = !st.Switched.IsZero() && !h.masterStarted().After(st.Switched)
	h.oldMaster.Store(outdated)
	return outdated
}

// MasterOutdated returns what CheckMaster found last.
func (h *Host) MasterOutdated() bool { return h.oldMaster.Load() }

// Check warns while the master and saltclusterd work with different configurations, or the state cannot be read.
func (h *Host) Check() (_ health.Result, bad bool) {
	switch {
	case h.broken != nil:
		return health.Result{Level: health.Warn, Reason: h.broken.Error(), Hint: "see " + h.path}, true
	case h.MasterOutdated():
		return health.Result{
			Level:  health.Warn,
			Reason: "the salt-master still runs with its configuration from before the migration; other masters do its work",
			Hint:   "restart it: systemctl restart salt-master",
		}, true
	}
	return health.Result{Level: health.OK}, false
}

// describe returns what is known without reading the disk.
func (h *Host) describe() adminapi.MigrateNode {
	h.mu.Lock()
	defer h.mu.Unlock()
	shared := h.c.Shared
	n := adminapi.MigrateNode{
		Node: string(h.c.Node), Shared: shared, Stage: string(h.st.Stage), StandIn: h.st.StandIn && shared,
		Busy: h.busy, Doing: h.doing, ByHand: h.byHand, Switched: h.st.Switched,
		Copied: adminapi.MigrateCopied{Files: h.st.Copied.Files, Bytes: h.st.Copied.Bytes, Copied: h.st.Copied.Copied},
	}
	switch {
	case h.st.Stage == unshare.Shared && shared:
		n.Stage = "shared"
	case h.st.Stage == unshare.Shared:
		n.Stage = string(unshare.Isolated)
	case h.st.Stage == unshare.Isolated && shared: // the option was set back by hand
		n.Stage = "shared"
	}
	switch {
	case h.broken != nil:
		n.Error = h.broken.Error()
	case h.err != nil:
		n.Error = h.err.Error()
	}
	return n
}
