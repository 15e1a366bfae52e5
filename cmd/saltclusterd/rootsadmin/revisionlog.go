package rootsadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/fsync/tree"
)

// revisionLog implements roots.Log.
type revisionLog struct{ r *Roots }

// Head implements roots.Log.
func (l revisionLog) Head() (roots.Revision, bool) { return headOf(l.r.cfg.Log.View()) }

// Ready implements roots.Log.
func (l revisionLog) Ready() bool { return l.r.cfg.Log.CaughtUp() }

// Revisions implements roots.Log.
func (l revisionLog) Revisions() []roots.Revision { return revisionsOf(l.r.cfg.Log.View()) }

// Changed implements roots.Log.
func (l revisionLog) Changed(ctx context.Context) <-chan struct{} { return l.r.cfg.Log.Watch(ctx) }

// Propose implements roots.Log.
func (l revisionLog) Propose(ctx context.Context, p roots.Proposal) (roots.Revision, error) {
	if err := checkVersions(l.r.cfg.Versions()); err != nil {
		return roots.Revision{}, err
	}
	l.r.forgetFileLists() // the master here must see the edit before minions get it elsewhere
	number, err := l.r.proposeCommand(ctx, state.RootsPropose{
		Parent: p.Parent, Author: l.r.cfg.Self, Root: p.Root.String(), Kind: string(p.Kind), Held: p.Held && !p.Confirmed,
		Stats: state.RootsStats{
			Files: int64(p.Stats.Files), Bytes: p.Stats.Bytes, Changed: int64(p.Stats.Changed), Removed: int64(p.Stats.Removed),
		},
		Note: p.Note,
	})
	if err != nil {
		return roots.Revision{}, err
	}
	if rev, ok := findRevision(l.r.cfg.Log.View(), number); ok {
		return convertRevision(rev)
	}
	return roots.Revision{}, fmt.Errorf("%w: %w: this node has not received revision %d yet",
		roots.ErrNoQuorum, roots.ErrUncertain, number)
}

// proposeCommand proposes a command about roots, and returns the number of the revision that it made or changed.
func (r *Roots) proposeCommand(ctx context.Context, c state.Command) (uint64, error) {
	results, err := r.cfg.Log.Propose(ctx, c)
	if errors.Is(err, consensus.ErrUncertain) {
		return 0, fmt.Errorf("%s: %w: %w: %w", c.Type(), roots.ErrNoQuorum, roots.ErrUncertain, err)
	}
	if errors.Is(err, consensus.ErrNoLeader) {
		return 0, fmt.Errorf("%s: %w: %w", c.Type(), roots.ErrNoQuorum, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Type(), err)
	}
	if err := results[0].Err(); state.IsConflict(err) {
		return 0, fmt.Errorf("%w: %w", roots.ErrNotCurrent, err)
	} else if err != nil {
		return 0, err
	}
	return results[0].Rev, nil
}

// headOf returns the newest revision in force.
func headOf(v state.View) (roots.Revision, bool) {
	r, ok := v.RootsHead()
	if !ok {
		return roots.Revision{}, false
	}
	out, err := convertRevision(r)
	return out, err == nil
}

// revisionsOf returns all revisions that are kept, the oldest first.
func revisionsOf(v state.View) []roots.Revision {
	var out []roots.Revision
	for _, r := range v.RootsRevisions() {
		if rev, err := convertRevision(r); err == nil {
			out = append(out, rev)
		}
	}
	return out
}

func findRevision(v state.View, number uint64) (state.RootsRevision, bool) {
	list := v.RootsRevisions()
	if i := slices.IndexFunc(list, func(r state.RootsRevision) bool { return r.Number == number }); i >= 0 {
		return list[i], true
	}
	return state.RootsRevision{}, false
}

// convertRevision converts a revision of consensus to one of the engine.
func convertRevision(r state.RootsRevision) (roots.Revision, error) {
	root, err := tree.ParseHash(r.Root)
	if err != nil {
		return roots.Revision{}, fmt.Errorf("revision %d of the trees: %w", r.Number, err)
	}
	st := roots.StateApplied
	switch r.State {
	case state.RootsHeld:
		st = roots.StateHeld
	case state.RootsDropped:
		st = roots.StateDropped
	}
	return roots.Revision{
		Number: r.Number, Parent: r.Parent, Root: root, Author: r.Author, Time: uint64(r.At) << 16,
		Kind: roots.Kind(r.Kind), State: st,
		Stats: roots.Stats{
			Files: int(r.Stats.Files), Bytes: r.Stats.Bytes, Changed: int(r.Stats.Changed), Removed: int(r.Stats.Removed),
		},
		Note: r.Note,
	}, nil
}

// checkVersions returns an error if a member does not understand commands about roots. An older saltclusterd stops when
// it reads one in the log, and so does a member that was down during the upgrade until it is upgraded as well.
func checkVersions(older, unseen []string) error {
	switch {
	case len(older) > 0:
		return fmt.Errorf("%w: roots are not replicated before saltclusterd is upgraded on %s",
			roots.ErrNoQuorum, strings.Join(older, ", "))
	case len(unseen) > 0:
		return fmt.Errorf("%w: it is not known yet which version of saltclusterd runs on %s",
			roots.ErrNoQuorum, strings.Join(unseen, ", "))
	}
	return nil
}
