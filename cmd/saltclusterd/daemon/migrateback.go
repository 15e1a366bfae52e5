package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
)

// switchBack lets this node work on the share again. What happened since is there: another node stands for the share.
func (s *service) switchBack(ctx context.Context) error {
	d, g := s.m.d, s.m.d.migration
	st := g.state()
	if d.shares() || st.Plan == nil {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s has not been migrated", d.id)
	}
	if !s.somebodyStandsIn(ctx) {
		return adminapi.Errorf(adminapi.CodeRefused, "set the master's and saltclusterd's configuration by hand, and copy what is to be shared",
			"no node stands for the share any more: what happened since is not there")
	}
	if err := g.unconfigure(ctx, st); err != nil {
		return err
	}
	err := g.change(func(st *unshare.State) { st.Stage, st.Switched, st.Files = unshare.Copied, time.Now(), nil })
	if err != nil {
		return err
	}
	return s.takeEffect(ctx)
}

// unconfigure takes back what configure has done.
func (g *migration) unconfigure(ctx context.Context, st unshare.State) error {
	for _, t := range st.Plan.Trees {
		if t.Link == "" {
			continue
		}
		if _, err := os.Lstat(t.To); errors.Is(err, fs.ErrNotExist) {
			if err := os.Symlink(t.From, t.To); err != nil {
				return fmt.Errorf("link to the share: %w", err)
			}
		}
		if err := unshare.Restore(t); err != nil {
			return err
		}
	}
	for _, f := range st.Files {
		_ = os.Remove(f) // what stays is asked for
	}
	return g.awaitHand(ctx, func() *adminapi.MigrateByHand {
		master, own, edits := g.lacking(*st.Plan, true)
		if !master && !own && len(edits) == 0 {
			return nil
		}
		ask := &adminapi.MigrateByHand{Why: "the configuration still names the copies"}
		for _, f := range st.Files {
			if _, err := os.Lstat(f); err == nil {
				ask.Commands = append(ask.Commands, "rm "+f)
			}
		}
		for _, e := range edits {
			ask.Commands = append(ask.Commands, editCommand(e))
		}
		return ask
	})
}

// somebodyStandsIn asks the others.
func (s *service) somebodyStandsIn(ctx context.Context) bool {
	for _, n := range s.m.migration(ctx, false, "").Nodes {
		if n.StandIn && n.Shared {
			return true
		}
	}
	return false
}
