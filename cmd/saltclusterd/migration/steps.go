package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Log is what the cluster has agreed on.
type Log interface{ View() state.View }

// StepsConfig is what steps need of the running service.
type StepsConfig struct {
	Host        *Host
	Peers       Peers
	Log         Log
	RootsStored func() bool // whether this node has kept what it knows of the file and pillar roots

	// Go runs a function in the background, with a context that ends with the service, which waits for it.
	Go func(func(context.Context))
	// Upgrade puts a new process with the configuration of now in the place of this one. The context ends then.
	Upgrade func(context.Context, admin.Progress) error
	// RestartMaster runs the operator's command for that, if there is one.
	RestartMaster func(context.Context, admin.Progress) error
	// Announce tells the other members that the state of this node's master may have changed.
	Announce func()
	// Members lists the members and how they are.
	Members func(context.Context) []adminapi.Member
	Lag     Lag
	// Ready says whether the health checks of this node pass.
	Ready func() bool
}

// Lag has what a node may lack to serve as well as the others.
type Lag struct {
	Serving       func() bool           // everything is open, and no process before this one answers any more
	CaughtUp      func() bool           // with consensus
	MasterProblem func() string         // why the master does not serve; empty: it does
	KeysSynced    func(rev uint64) bool // the key files are those of a revision
	RootsPending  func() string         // what is missing of the file and pillar roots
}

// behind says what this node lacks to serve as well as the others; empty: nothing.
func (s *Steps) behind() string {
	lag := s.c.Lag
	switch {
	case !lag.Serving():
		return "4505 and 4506 are being opened"
	case !lag.CaughtUp():
		return "catching up with the cluster"
	case s.c.Host.MasterOutdated():
		return "the salt-master has not been restarted"
	case lag.MasterProblem() != "":
		return lag.MasterProblem()
	case !lag.KeysSynced(s.c.Log.View().Rev()):
		return "updating the key files"
	}
	if pending := lag.RootsPending(); pending != "" {
		return "updating the file and pillar roots: " + pending
	}
	return ""
}

// Steps runs the steps of this node's migration, one at a time.
type Steps struct{ c StepsConfig }

// NewSteps returns the steps of a service. It finds out whether the master works with its old configuration.
func NewSteps(c StepsConfig) *Steps {
	c.Host.CheckMaster()
	return &Steps{c: c}
}

// Begin begins a step and does not wait for its end.
func (s *Steps) Begin(ctx context.Context, r adminapi.MigrateRequest) (adminapi.MigrateNode, error) {
	h := s.c.Host
	var run func(context.Context) error
	switch {
	case r.Step == adminapi.MigrateBack:
		run = s.switchBack
	case !h.c.Shared && h.State().Stage == unshare.Switching && r.Step == adminapi.MigrateSwitch:
		run = s.finishSwitch
	case !h.c.Shared:
		return adminapi.MigrateNode{}, adminapi.Errorf(adminapi.CodeRefused, "", "%s shares no file system", h.c.Node)
	case r.Step == adminapi.MigrateStandIn:
		run = s.standIn
	case r.Step == adminapi.MigrateCopy:
		run = func(ctx context.Context) error { return s.copyShare(ctx, r.To) }
	case r.Step == adminapi.MigrateSwitch:
		run = s.switchOver
	default:
		return adminapi.MigrateNode{}, adminapi.Errorf(adminapi.CodeInvalid, "", "there is no step %q", r.Step)
	}
	if err := s.start(r.Step, run); err != nil {
		return adminapi.MigrateNode{}, err
	}
	return s.Report(ctx, false, ""), nil
}

// start runs a step in the background. It ends when the service does.
func (s *Steps) start(step adminapi.MigrateStep, run func(context.Context) error) error {
	if err := s.c.Host.lockStep(step); err != nil {
		return err
	}
	s.c.Go(func(ctx context.Context) {
		err := run(ctx)
		s.c.Host.unlockStep(err)
		if err != nil && ctx.Err() == nil {
			s.c.Host.c.Logger.Error("migration to an own file system", "step", string(step), "err", err)
		}
	})
	return nil
}

// Resume finishes what a process before this one has begun. The service calls it when everything is open.
func (s *Steps) Resume() {
	h := s.c.Host
	st := h.State()
	switch {
	case st.Stage == unshare.Switching && !h.c.Shared:
		_ = s.start(adminapi.MigrateSwitch, s.finishSwitch)
	case !st.Switched.IsZero() && h.c.Shared:
		_ = s.start(adminapi.MigrateBack, func(ctx context.Context) error {
			if err := s.awaitNewMaster(ctx); err != nil {
				return err
			}
			return h.changeState(func(st *unshare.State) { st.Switched = time.Time{} })
		})
	}
}

// Report describes how far this node is and, with plan, what a migration with copies in to would do.
func (s *Steps) Report(ctx context.Context, plan bool, to string) adminapi.MigrateNode {
	h := s.c.Host
	n := h.describe()
	n.Behind = s.behind()
	if n.Behind == "" && !s.c.Ready() {
		n.Behind = "it is not ready"
	}
	n.Caught = n.Behind == ""
	st := h.State()
	switch {
	case h.c.Shared && plan && st.Stage == unshare.Shared:
		p := h.makePlan(to)
		st.Plan = &p
	case st.Plan == nil:
		return n
	}
	n.Notes, n.Refused = st.Plan.Notes, st.Plan.Refused
	var sizes []unshare.Size
	for _, t := range st.Plan.Trees {
		var size unshare.Size
		if plan {
			size, _ = unshare.Measure(ctx, t.From) // what cannot be counted cannot be copied either, and the copy says so
		}
		sizes = append(sizes, size)
		n.Trees = append(n.Trees, adminapi.MigrateTree{
			Name: t.Name, From: t.From, To: t.To, Files: size.Files, Bytes: size.Bytes,
		})
	}
	if plan && h.c.Shared && len(n.Refused) == 0 {
		n.Steps = h.describePlan(*st.Plan, to, sizes)
	}
	return n
}

// standIn makes this node the one that replicates the share.
func (s *Steps) standIn(ctx context.Context) error {
	h := s.c.Host
	if h.State().StandIn {
		return nil
	}
	if err := s.checkRoots(); err != nil {
		return err
	}
	if err := h.changeState(func(st *unshare.State) { st.StandIn = true }); err != nil {
		return err
	}
	if err := s.applyConfig(ctx); err != nil {
		return errors.Join(err, h.changeState(func(st *unshare.State) { st.StandIn = false }))
	}
	return nil
}

// checkRoots refuses to replicate a share whose roots would lose against those of an earlier time.
func (s *Steps) checkRoots() error {
	if _, ok := s.c.Log.View().RootsHead(); !ok {
		return nil
	}
	if !s.c.RootsStored() {
		return adminapi.Errorf(adminapi.CodeRefused,
			"name a node that was a member then: saltclusterctl migrate --stand-in NODE",
			"the cluster replicated its roots before it shared them, and %s was not a member then: "+
				"the older content would replace that of the share", s.c.Host.c.Node)
	}
	return nil
}

// applyConfig puts a process with the configuration of now in the place of this one.
func (s *Steps) applyConfig(ctx context.Context) error {
	if err := s.c.Upgrade(ctx, s.c.Host.progress); err != nil {
		return fmt.Errorf("let the configuration take effect: %w", err)
	}
	return nil
}

// copyShare copies everything, and compares it.
func (s *Steps) copyShare(ctx context.Context, to string) error {
	h := s.c.Host
	p := h.makePlan(to)
	if st := h.State(); st.Stage == unshare.Copied && st.Plan != nil && to == "" {
		p = *st.Plan
	}
	if len(p.Refused) > 0 {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s", strings.Join(p.Refused, "; "))
	}
	if err := h.awaitOperator(ctx, func() *adminapi.MigrateByHand { return h.requestDirs(p, to) }); err != nil {
		return err
	}
	for _, t := range p.Trees {
		if err := checkRoom(ctx, t); err != nil {
			return err
		}
	}
	r, err := h.copyTrees(ctx, p, unshare.CopyOptions{Settle: true}, p.Trees)
	if err != nil {
		return err
	}
	return h.changeState(func(st *unshare.State) { st.Stage, st.Plan, st.Copied = unshare.Copied, &p, r })
}

// checkRoom refuses a copy that does not fit. What an earlier pass has copied needs no further room.
func checkRoom(ctx context.Context, t unshare.Tree) error {
	size, err := unshare.Measure(ctx, t.From)
	if err != nil {
		return err
	}
	have, err := unshare.Measure(ctx, t.To)
	if err != nil {
		have = unshare.Size{}
	}
	return unshare.Room(t.To, unshare.Size{Files: max(0, size.Files-have.Files), Bytes: max(0, size.Bytes-have.Bytes)})
}

// copyTrees copies some trees of a plan.
func (h *Host) copyTrees(
	ctx context.Context, p unshare.Plan, o unshare.CopyOptions, trees []unshare.Tree,
) (all unshare.Report, err error) {
	o.Moved = p.Trees
	for _, t := range trees {
		o.Tell = func(r unshare.Report) {
			h.setDoing(fmt.Sprintf("copying %s: %d files, %d MiB", t.Name, r.Files, r.Bytes>>20))
		}
		o.Skip = nil
		if t.Name == "pki" {
			o.Skip = keydir.Private
		}
		r, err := unshare.Copy(ctx, t, o)
		if all.Add(r); err != nil {
			return all, err
		}
	}
	return all, nil
}
