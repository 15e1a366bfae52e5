package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newTransferCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:      "transfer",
		Usage:     "hand the leadership over, to NODE or to whoever is fit",
		ArgsUsage: "[NODE]",
		Flags: []cli.Flag{
			dryRunFlag(),
			waitFlag("this node sees who leads; --wait=false returns as soon as the leader has handed over"),
			timeoutFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("saltclusterctl transfer m2", "transfer takes at most one argument, the id of a node")
			}
			if c.Bool("dry-run") {
				return forecastTransfer(c, e)
			}
			return runTransfer(c, e)
		},
	})
}

func runTransfer(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	r := adminapi.TransferRequest{To: c.Args().First(), NoWait: !c.Bool("wait"), Timeout: c.Duration("timeout")}
	return runOperation(c, e, func(ctx context.Context, client *adminapi.Client,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Transfer(ctx, r, p)
	})
}

func forecastTransfer(c *cli.Context, e *env) error {
	st, err := askAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	return e.showPlan(c, transferForecast(st, c.Args().First()))
}

// transferForecast judges by the rules of the daemon.
func transferForecast(st adminapi.Status, to string) forecast {
	f := forecast{Node: to, Effects: []string{}}
	if st.Cluster == nil {
		f.Refused = "this node belongs to no cluster"
		return f
	}
	if !st.Cluster.Quorum.OK {
		f.Refused = undecidable
		return f
	}
	if to == "" {
		if to = findSuccessor(st); to == "" {
			f.Refused = "no other voter is there to lead"
			return f
		}
		f.Node = to
	}
	at := slices.IndexFunc(st.Members, func(m adminapi.Member) bool { return m.ID == to })
	switch {
	case to == st.Cluster.Leader:
		f.Effects = append(f.Effects, to+" leads already")
	case at < 0 || !slices.Contains(st.Cluster.VoterIDs, to):
		f.Refused = to + " does not vote, so it cannot lead"
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
