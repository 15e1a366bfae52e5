package roots

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

// discardLike removes all that this node has put aside with a path like a pattern (path.Match).
func discardLike(c *cli.Context, e *console.Env, pattern string) error {
	if c.NArg() != 0 {
		return console.Usagef("saltclusterctl roots conflicts lists them", "roots discard takes an id or --path, not both")
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return console.Usagef("* is any text without /, ? any character", "roots discard --path %q: %v", pattern, err)
	}
	list, self, err := askAside(c, e)
	if err != nil {
		return err
	}
	mine := asideLike(list, self, pattern)
	plan := discardLikeForecast(mine, self, pattern)
	if c.Bool("dry-run") {
		return dryrun.ShowPlan(e, c, plan)
	}
	if plan.Refused != "" {
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl roots conflicts lists what was put aside", "%s",
			plan.Refused)
	}
	var size int64
	for _, x := range mine {
		size += x.Size
	}
	if err := e.AskConsent(c, fmt.Sprintf("remove %s (%s) for good?", wording.Plural(len(mine), "file"),
		bytesText(size))); err != nil {
		return err
	}
	return operateRoots(c, e, func(client *adminapi.Client, ctx context.Context,
		p func(adminapi.Progress)) (out adminapi.Outcome, err error) {
		gone := 0
		for _, x := range mine {
			out, err = client.AsideRoots(ctx, adminapi.AsideRootsRequest{ID: x.ID}, p)
			if adminapi.CodeOf(err) == adminapi.CodeNotFound { // it was removed meanwhile
				continue
			}
			if err != nil {
				return out, fmt.Errorf("%d of %d are removed: %w", gone, len(mine), err)
			}
			gone++
		}
		out.Message = wording.Plural(gone, "file") + " removed"
		return out, nil
	})
}

// asideLike is what a node has put aside with a path, or last name of it, like a pattern that is known to be good.
func asideLike(list adminapi.RootsConflicts, node, pattern string) []adminapi.RootsConflict {
	return slices.DeleteFunc(slices.Clone(list.Conflicts), func(x adminapi.RootsConflict) bool {
		whole, _ := path.Match(pattern, x.Path)
		last, _ := path.Match(pattern, path.Base(x.Path))
		return x.Node != node || !whole && !last
	})
}

func discardLikeForecast(mine []adminapi.RootsConflict, self, pattern string) dryrun.Forecast {
	f := dryrun.Forecast{Node: self, Effects: []string{}}
	for _, x := range mine {
		f.Effects = append(f.Effects, discardEffect(x))
	}
	if len(mine) == 0 {
		f.Refused = fmt.Sprintf("%s has put aside nothing that matches %s", self, pattern)
	}
	return f
}

// discardEffect tells what a discard would do.
func discardEffect(x adminapi.RootsConflict) string {
	return fmt.Sprintf("%s of %s (%s), kept as %s, would be removed for good", x.Path, x.Slot, bytesText(x.Size), x.Kept)
}
