package migration

import (
	"context"
	"errors"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
)

const (
	behindPoll = 200 * time.Millisecond
	// restartSettle is how long the master may need after its restart command before the operator is asked for a restart.
	restartSettle = time.Minute
)

// switchOver has this node work on its copies. It ends with another process in the place of this one.
func (s *Steps) switchOver(ctx context.Context) error {
	h := s.c.Host
	st := h.State()
	if st.Stage != unshare.Copied {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s has no copies yet", h.c.Node)
	}
	if err := s.checkMembers(ctx); err != nil {
		return err
	}
	base, err := keydir.ReadSharedBase(h.c.Master().PkiDir)
	if err != nil {
		return err
	}
	r, err := h.copyTrees(ctx, *st.Plan, unshare.CopyOptions{}, st.Plan.Trees)
	if err != nil {
		return err
	}
	if pki, ok := st.Plan.Options["pki_dir"].(string); ok {
		if err := base.TakeHome(pki, membership.KeyDir(h.c.Options.Paths.StateDir), h.c.Node); err != nil {
			return err
		}
	}
	err = h.changeState(func(st *unshare.State) { st.Stage, st.Copied = unshare.Switching, r })
	if err == nil {
		err = h.configure(ctx, *st.Plan)
	}
	if err == nil {
		err = h.changeState(func(st *unshare.State) { st.Switched = time.Now() })
	}
	if err == nil {
		err = s.applyConfig(ctx)
	}
	if err != nil {
		return errors.Join(err, h.undoSwitch())
	}
	return nil
}

// checkMembers refuses while another node is not well: one at a time.
func (s *Steps) checkMembers(ctx context.Context) error {
	for _, mem := range s.c.Members(ctx) {
		if mem.State != adminapi.StateAlive || mem.Ready != nil && !*mem.Ready {
			return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl status says why",
				"%s has a problem: no other node may leave the share now", mem.ID)
		}
	}
	return nil
}

// finishSwitch has the master work on the copies as well. It runs in the process that took over during the switch.
func (s *Steps) finishSwitch(ctx context.Context) error {
	h := s.c.Host
	if err := s.awaitNewMaster(ctx); err != nil {
		return err
	}
	st := h.State()
	linked := slices.DeleteFunc(slices.Clone(st.Plan.Trees), func(t unshare.Tree) bool { return t.Link == "" })
	// What others wrote to the share between the last pass and the exchange of the links.
	r, err := h.copyTrees(ctx, *st.Plan, unshare.CopyOptions{Keep: true}, linked)
	if err != nil {
		h.c.Logger.Warn("the latest changes on the share are not here yet; they come from the other nodes", "err", err)
	}
	for behind := s.behind(); behind != ""; behind = s.behind() {
		h.setDoing(behind)
		if !backoff.Sleep(ctx, behindPoll) {
			return context.Cause(ctx)
		}
	}
	for _, t := range linked {
		if err := unshare.Forget(t); err != nil {
			return err
		}
	}
	h.c.Logger.Info("this node has left the shared file system", "count", r.Copied)
	return h.changeState(func(st *unshare.State) { st.Stage, st.StandIn = unshare.Isolated, false })
}

// switchBack has this node work on the share again. What happened since is there, because another node replicates the
// share.
func (s *Steps) switchBack(ctx context.Context) error {
	h := s.c.Host
	st := h.State()
	if h.c.Shared || st.Plan == nil {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s has not been migrated", h.c.Node)
	}
	if !s.c.Peers.standIn(ctx) {
		return adminapi.Errorf(adminapi.CodeRefused,
			"change the master's and saltclusterd's configuration by hand, and copy the files that are to be shared",
			"no node is the stand-in for the share any more: the share lacks the changes made since then")
	}
	if err := h.unconfigure(ctx, st); err != nil {
		return err
	}
	err := h.changeState(func(st *unshare.State) { st.Stage, st.Switched, st.Files = unshare.Copied, time.Now(), nil })
	if err != nil {
		return err
	}
	return s.applyConfig(ctx)
}

// awaitNewMaster waits until the salt-master was started with the new configuration.
func (s *Steps) awaitNewMaster(ctx context.Context) error {
	h := s.c.Host
	began, failed := time.Now(), error(nil)
	if h.CheckMaster() {
		h.setDoing("restarting the salt-master")
		failed = s.c.RestartMaster(ctx, h.progress)
	}
	s.c.Announce()
	defer s.c.Announce()
	commanded := len(h.c.Options.Salt.RestartCommand) > 0
	return h.awaitOperator(ctx, func() *adminapi.MigrateByHand {
		if !h.CheckMaster() {
			return nil
		}
		request := &adminapi.MigrateByHand{
			Why: "the salt-master must read its new configuration", Commands: []string{restartByHand},
		}
		switch {
		case failed != nil:
			request.Why = failed.Error()
		case commanded && time.Since(began) < restartSettle:
			return &adminapi.MigrateByHand{Why: "the salt-master is being restarted"}
		case commanded:
			request.Why = "master_restart_command has not restarted the salt-master"
		}
		return request
	})
}
