package roots

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func forecastDecision(c *cli.Context, e *console.Env, decision string, number uint64) error {
	h, err := console.AskAdmin(c, e, (*adminapi.Client).RootsHistory)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(h.Revisions, func(r adminapi.RootsRevision) bool { return r.Number == number })
	switch {
	case at < 0:
		return dryrun.ShowPlan(e, c, dryrun.Forecast{
			Effects: []string{},
			Refused: fmt.Sprintf("revision %d is not kept (saltclusterctl roots history lists those that are)", number),
		})
	case decision == adminapi.RootsConfirm:
		return dryrun.ShowPlan(e, c, confirmForecast(h.Revisions[at]))
	}
	return dryrun.ShowPlan(e, c, rollbackForecast(h, h.Revisions[at]))
}

func confirmForecast(r adminapi.RootsRevision) dryrun.Forecast {
	if r.State != rootsHeld {
		return dryrun.Forecast{Effects: []string{}, Refused: fmt.Sprintf("revision %d does not wait for a decision, it is %s",
			r.Number, r.State)}
	}
	return dryrun.Forecast{Effects: []string{fmt.Sprintf("all nodes would get the edits of %s until %s: %d changed, %d removed",
		r.Author, console.FormatStamp(r.Time), r.Changed, r.Removed)}}
}

func rollbackForecast(h adminapi.RootsHistory, to adminapi.RootsRevision) dryrun.Forecast {
	f, number := dryrun.Forecast{Effects: []string{}}, to.Number
	head := slices.IndexFunc(h.Revisions, func(r adminapi.RootsRevision) bool { return r.Current })
	switch {
	case to.Current || head >= 0 && h.Revisions[head].Root == to.Root && to.Root != "":
		f.Effects = append(f.Effects, fmt.Sprintf("the trees are as in revision %d", number))
		return f
	case to.State != rootsApplied:
		f.Refused = fmt.Sprintf("revision %d was never in force, it is %s", number, to.State)
		return f
	}
	f.Effects = append(f.Effects, fmt.Sprintf("all nodes would have the trees of revision %d: by %s, %s, %s, %s",
		number, to.Author, console.FormatStamp(to.Time), wording.Plural(to.Files, "file"), bytesText(to.Bytes)))
	for _, r := range h.Revisions {
		if r.Number > number && r.State == rootsApplied {
			f.Effects = append(f.Effects,
				fmt.Sprintf("the changes of revision %d by %s would be undone: %d changed, %d removed", r.Number, r.Author,
					r.Changed, r.Removed))
		}
	}
	return f
}

// States of a revision: it is, or was, in force; it waits for a decision.
const (
	rootsApplied = "applied"
	rootsHeld    = "held"
)

func forecastDiscard(c *cli.Context, e *console.Env) error {
	list, self, err := askAside(c, e)
	if err != nil {
		return err
	}
	return dryrun.ShowPlan(e, c, discardForecast(list, self, c.Args().First()))
}

// askAside asks what all nodes have put aside, and which of them answers.
func askAside(c *cli.Context, e *console.Env) (list adminapi.RootsConflicts, self string, err error) {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).RootsStatus)
	if err != nil {
		return list, "", err
	}
	list, err = console.AskAdmin(c, e, (*adminapi.Client).RootsConflicts)
	return list, st.From, err
}

func discardForecast(list adminapi.RootsConflicts, self, id string) dryrun.Forecast {
	f := dryrun.Forecast{Node: self, Effects: []string{}}
	is := func(here bool) int {
		return slices.IndexFunc(list.Conflicts, func(x adminapi.RootsConflict) bool {
			return x.ID == id && (x.Node == self) == here
		})
	}
	if at := is(true); at >= 0 {
		f.Effects = append(f.Effects, discardEffect(list.Conflicts[at]))
		return f
	}
	f.Refused = fmt.Sprintf("nothing that %s has put aside has the id %s", self, id)
	if at := is(false); at >= 0 {
		f.Refused = fmt.Sprintf("%s is on %s: run the command there", id, list.Conflicts[at].Node)
	}
	return f
}

func forecastRefill(c *cli.Context, e *console.Env, dir string) error {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).RootsStatus)
	if err != nil {
		return err
	}
	return dryrun.ShowPlan(e, c, refillForecast(st, filepath.Clean(dir)))
}

func refillForecast(st adminapi.RootsStatus, dir string) dryrun.Forecast {
	f := dryrun.Forecast{Node: st.From, Effects: []string{}}
	for _, n := range st.Nodes {
		for _, slot := range n.Slots {
			if n.Node != st.From || slot.Dir != dir {
				continue
			}
			if !slot.Replaced {
				f.Refused = dir + " was not replaced, so there is nothing to refill"
				continue
			}
			f.Effects = append(f.Effects,
				fmt.Sprintf("%s (%s) would get the cluster's content; its other content would be put aside", dir, slot.Slot))
		}
	}
	switch {
	case len(f.Effects) > 0: // of one that is in several slots some may be in order
		f.Refused = ""
	case f.Refused == "":
		f.Refused = dir + " is not a directory of this node's roots (saltclusterctl roots status lists them)"
	}
	return f
}
