package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/sidecar/adminapi"
)

func newTransferCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "transfer",
		Usage:     "hand the leadership over to NODE, or to any suitable node",
		ArgsUsage: "[NODE]",
		Flags: []cli.Flag{
			dryrun.DryRunFlag(),
			console.WaitFlag("this node sees the new leader; --wait=false returns as soon as the leader has handed over"),
			console.TimeoutFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return console.Usagef("saltclusterctl transfer m2", "transfer takes at most one argument, the id of a node")
			}
			if c.Bool("dry-run") {
				return forecastTransfer(c, e)
			}
			return runTransfer(c, e)
		},
	})
}

func runTransfer(c *cli.Context, e *console.Env) error {
	r := adminapi.TransferRequest{To: c.Args().First(), NoWait: !c.Bool("wait"), Timeout: c.Duration("timeout")}
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Transfer, r))
}

func forecastTransfer(c *cli.Context, e *console.Env) error {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	return dryrun.ShowPlan(e, c, transferForecast(st, c.Args().First()))
}

// transferForecast judges by the rules of the daemon.
func transferForecast(st adminapi.Status, to string) dryrun.Forecast {
	f := dryrun.Forecast{Node: to, Effects: []string{}}
	if st.Cluster == nil {
		f.Refused = "this node belongs to no cluster"
		return f
	}
	if !st.Cluster.Quorum.OK {
		f.Refused = dryrun.Undecidable
		return f
	}
	if to == "" {
		if to = findSuccessor(st); to == "" {
			f.Refused = "no other voter can lead"
			return f
		}
		f.Node = to
	}
	at := slices.IndexFunc(st.Members, func(m adminapi.Member) bool { return m.ID == to })
	switch {
	case to == st.Cluster.Leader:
		f.Effects = append(f.Effects, to+" leads already")
	case at < 0 || !slices.Contains(st.Cluster.VoterIDs, to):
		f.Refused = to + " is not a voter of this cluster, so it cannot lead"
	case st.Members[at].State != adminapi.StateAlive:
		f.Refused = to + " does not answer, so it cannot lead"
	default:
		f.Effects = append(f.Effects, fmt.Sprintf("%s would lead instead of %s", to, cmp.Or(st.Cluster.Leader, "no node")))
	}
	return f
}

// findSuccessor is who would lead when none is named: there, voting, with a salt-master if there is one.
func findSuccessor(st adminapi.Status) (successor string) {
	for _, m := range st.Members {
		switch {
		case m.ID == st.Cluster.Leader || m.Draining || m.State != adminapi.StateAlive ||
			!slices.Contains(st.Cluster.VoterIDs, m.ID):
		case m.Role != adminapi.RoleWitness:
			return m.ID
		case successor == "":
			successor = m.ID
		}
	}
	return successor
}
