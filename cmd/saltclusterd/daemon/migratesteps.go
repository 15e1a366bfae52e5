package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
)

const (
	migratePoll = 200 * time.Millisecond
	// restartSettle is how long the master may need after its restart command before a person is asked to look.
	restartSettle = time.Minute
)

// standIn makes this node the one that stands for the share.
func (s *service) standIn(ctx context.Context) error {
	g := s.m.d.migration
	if g.state().StandIn {
		return nil
	}
	if err := s.rootsKnown(); err != nil {
		return err
	}
	if err := g.change(func(st *unshare.State) { st.StandIn = true }); err != nil {
		return err
	}
	if err := s.takeEffect(ctx); err != nil {
		return errors.Join(err, g.change(func(st *unshare.State) { st.StandIn = false }))
	}
	return nil
}

// rootsKnown refuses to stand for a share whose roots would lose against those of an earlier time.
func (s *service) rootsKnown() error {
	if _, ok := s.m.cons.View().RootsHead(); !ok {
		return nil
	}
	if !s.roots.Stored() {
		return adminapi.Errorf(adminapi.CodeRefused, "name one that was a member then: saltclusterctl migrate --stand-in NODE",
			"the cluster had roots of its own before it shared them, and %s was no member then: what is on the share would lose against them", s.m.d.id)
	}
	return nil
}

// takeEffect puts a process with the configuration of now in the place of this one.
func (s *service) takeEffect(ctx context.Context) error {
	g := s.m.d.migration
	_, err := s.m.d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(_, message string, _ ...int) { g.say("%s", message) })
	if err != nil {
		return fmt.Errorf("let the configuration take effect: %w", err)
	}
	return nil
}

// copyShare copies everything, and compares it.
func (s *service) copyShare(ctx context.Context, to string) error {
	g := s.m.d.migration
	p := g.plan(to)
	if st := g.state(); st.Stage == unshare.Copied && st.Plan != nil && to == "" {
		p = *st.Plan
	}
	if len(p.Refused) > 0 {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s", strings.Join(p.Refused, "; "))
	}
	if err := g.awaitHand(ctx, func() *adminapi.MigrateByHand { return g.roomToWrite(p, to) }); err != nil {
		return err
	}
	for _, t := range p.Trees {
		size, err := unshare.Measure(ctx, t.From)
		if err == nil {
			var have unshare.Size
			if have, err = unshare.Measure(ctx, t.To); err != nil {
				have, err = unshare.Size{}, nil
			}
			err = unshare.Room(t.To, unshare.Size{Files: max(0, size.Files-have.Files), Bytes: max(0, size.Bytes-have.Bytes)})
		}
		if err != nil {
			return err
		}
	}
	r, err := g.pass(ctx, p, true, nil)
	if err != nil {
		return err
	}
	return g.change(func(st *unshare.State) { st.Stage, st.Plan, st.Copied = unshare.Copied, &p, r })
}

// pass copies all trees, or those that only says.
func (g *migration) pass(ctx context.Context, p unshare.Plan, settle bool, only func(unshare.Tree) bool) (all unshare.Report, err error) {
	for _, t := range p.Trees {
		if only != nil && !only(t) {
			continue
		}
		o := unshare.CopyOptions{Settle: settle, Keep: only != nil, Moved: p.Trees, Tell: func(r unshare.Report) {
			g.say("copying %s: %d files, %d MiB", t.Name, r.Files, r.Bytes>>20)
		}}
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

// switchOver lets this node work on its copies. It ends with another process in the place of this one.
func (s *service) switchOver(ctx context.Context) error {
	g := s.m.d.migration
	st := g.state()
	if st.Stage != unshare.Copied {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s has no copies yet", s.m.d.id)
	}
	if err := s.othersWell(ctx); err != nil {
		return err
	}
	base, err := keydir.ReadSharedBase(s.m.d.master.PkiDir)
	if err != nil {
		return err
	}
	r, err := g.pass(ctx, *st.Plan, false, nil)
	if err != nil {
		return err
	}
	if pki, ok := st.Plan.Options["pki_dir"].(string); ok {
		if err := base.TakeHome(pki, s.keyDirState(), s.m.d.id); err != nil {
			return err
		}
	}
	err = g.change(func(st *unshare.State) { st.Stage, st.Copied = unshare.Switching, r })
	if err == nil {
		err = g.configure(ctx, *st.Plan)
	}
	if err == nil {
		err = g.change(func(st *unshare.State) { st.Switched = time.Now() })
	}
	if err == nil {
		err = s.takeEffect(ctx)
	}
	if err != nil {
		return errors.Join(err, g.undo())
	}
	return nil
}

func (s *service) keyDirState() string { return filepath.Join(s.m.d.cfg.Paths.StateDir, "keydir") }

// configure makes the two configurations name the copies, and waits for a person where it cannot.
func (g *migration) configure(ctx context.Context, p unshare.Plan) error {
	master, own, texts, err := g.dropIns(p)
	if err != nil {
		return err
	}
	if err := g.change(func(st *unshare.State) { st.Files = []string{master, own} }); err != nil {
		return err
	}
	for _, t := range p.Trees {
		if t.Link != "" {
			if err := unshare.Exchange(t); err != nil {
				return err
			}
		}
	}
	failed := map[string]error{}
	for _, path := range []string{master, own} {
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		failed[path] = unshare.Install(path, []byte(texts[path]))
	}
	return g.awaitHand(ctx, func() *adminapi.MigrateByHand {
		lacksMaster, lacksOwn, edits := g.lacking(p, false)
		if !lacksMaster && !lacksOwn && len(edits) == 0 {
			return nil
		}
		ask := &adminapi.MigrateByHand{Why: "the configuration is not what it must be"}
		for path, lacks := range map[string]bool{master: lacksMaster, own: lacksOwn} {
			if lacks && failed[path] != nil {
				ask.Why = fmt.Sprintf("saltclusterd may not write its configuration: %v", failed[path])
				ask.Commands = append(ask.Commands, fmt.Sprintf("cat > %s <<'END'\n%sEND", path, texts[path]))
			} else if lacks {
				ask.Why = fmt.Sprintf("%s does not have the effect it should have; another file overrules it", path)
			}
		}
		for _, e := range edits {
			ask.Commands = append(ask.Commands, editCommand(e))
		}
		return ask
	})
}

// awaitHand waits until nothing is left that a person has to do.
func (g *migration) awaitHand(ctx context.Context, left func() *adminapi.MigrateByHand) error {
	defer g.ask(nil)
	for {
		ask := left()
		if ask == nil {
			return nil
		}
		g.ask(ask)
		if !backoff.Sleep(ctx, 5*migratePoll) {
			return context.Cause(ctx)
		}
	}
}

// othersWell refuses while another node is not well: one at a time.
func (s *service) othersWell(ctx context.Context) error {
	for _, mem := range s.m.members(ctx) {
		if mem.State != adminapi.StateAlive || mem.Ready != nil && !*mem.Ready {
			return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl status says why", "%s is not well: no other node may leave the share now", mem.ID)
		}
	}
	return nil
}

// goOnMigrating finishes what a process before this one has begun: it is called when everything is open.
func (s *service) goOnMigrating() {
	g := s.m.d.migration
	if !s.m.d.shares() {
		s.wg.Go(func() { s.watchApart(s.ctx) })
	}
	st := g.state()
	switch {
	case st.Stage == unshare.Switching && !s.m.d.shares():
		_ = g.begin(s, adminapi.MigrateSwitch, s.finishSwitch)
	case !st.Switched.IsZero() && s.m.d.shares():
		_ = g.begin(s, adminapi.MigrateBack, func(ctx context.Context) error {
			if err := s.renewMaster(ctx); err != nil {
				return err
			}
			return g.change(func(st *unshare.State) { st.Switched = time.Time{} })
		})
	}
}

// finishSwitch has the master work on the copies, too.
func (s *service) finishSwitch(ctx context.Context) error {
	g := s.m.d.migration
	if err := s.renewMaster(ctx); err != nil {
		return err
	}
	st := g.state()
	// What others wrote to the share between the last pass and the exchange of the links.
	r, err := g.pass(ctx, *st.Plan, false, func(t unshare.Tree) bool { return t.Link != "" })
	if err != nil {
		s.m.log.Warn("what was written last on the share is not here yet; it comes from the other nodes", "err", err)
	}
	for behind := s.behindCluster(ctx); behind != ""; behind = s.behindCluster(ctx) {
		g.say("%s", behind)
		if !backoff.Sleep(ctx, migratePoll) {
			return context.Cause(ctx)
		}
	}
	for _, t := range st.Plan.Trees {
		if t.Link != "" {
			if err := unshare.Forget(t); err != nil {
				return err
			}
		}
	}
	s.m.log.Info("this node has left the shared file system", "count", r.Copied)
	return g.change(func(st *unshare.State) { st.Stage, st.StandIn = unshare.Isolated, false })
}

// renewMaster waits until the salt-master was started with the new configuration and serves.
func (s *service) renewMaster(ctx context.Context) error {
	d, g := s.m.d, s.m.d.migration
	began, failed := time.Now(), error(nil)
	if g.noteMaster() {
		g.say("restarting the salt-master")
		failed = d.restartMaster(ctx, func(_, message string, _ ...int) { g.say("%s", message) })
	}
	s.m.gossip.UpdateMeta()
	commanded := len(d.cfg.Salt.RestartCommand) > 0
	err := g.awaitHand(ctx, func() *adminapi.MigrateByHand {
		if !g.noteMaster() {
			return nil
		}
		ask := &adminapi.MigrateByHand{Why: "the salt-master must read its new configuration", Commands: []string{restartByHand}}
		switch {
		case failed != nil:
			ask.Why = failed.Error()
		case commanded && time.Since(began) < restartSettle:
			return &adminapi.MigrateByHand{Why: "the salt-master is being restarted"}
		case commanded:
			ask.Why = "master_restart_command has not restarted the salt-master"
		}
		return ask
	})
	s.m.gossip.UpdateMeta()
	return err
}

// behindCluster says what this node lacks to be as well as the others; empty when it is.
func (s *service) behindCluster(ctx context.Context) string {
	switch {
	case !s.opened.Load() || !s.settled.Load():
		return "4505 and 4506 are being opened"
	case !s.m.cons.CaughtUp():
		return "catching up with the cluster"
	case s.m.d.migration.oldMaster.Load():
		return "the salt-master has not been restarted"
	case s.masterProblem(ctx) != "":
		return s.masterProblem(ctx)
	case !s.dir.Synced(s.m.cons.View().Rev()):
		return "bringing the key files up to date"
	}
	if pending := s.roots.Pending(); pending != "" {
		return "bringing the file and pillar roots up to date: " + pending
	}
	return ""
}
