package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newRecoverCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "recover",
		Usage: "when more than half of the voters are gone for good: make a new cluster out of this node alone",
		Description: "Run it on one node, the one that knows most (status shows its index), while saltclusterd runs there. It keeps the\n" +
			"cluster's identity, its keys and secrets, so minions stay content. What the others decided after the last contact is lost,\n" +
			"and they are not members any more: when they come back they stop serving and have to join again.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force-new-cluster", Usage: "say that you mean it; nothing is done without it"},
			yesFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be kept and lost"},
			timeoutFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if !c.Bool("force-new-cluster") && !c.Bool("dry-run") {
				return usagef("saltclusterctl recover --dry-run shows what it would do",
					"recover makes a new cluster and needs --force-new-cluster")
			}
			return runRecover(c, e)
		},
	})
}

func runRecover(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	plan, err := askAdmin(c, e, (*adminapi.Client).RecoverPlan)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return e.printValue(c, plan, func(s *screen) { planText(s, plan, time.Now()) })
	}
	warning := &screen{}
	planText(warning, plan, time.Now())
	if _, err := e.stderr.Write(warning.b.Bytes()); err != nil {
		return err
	}
	if err := e.consentByName(c, "the cluster's id", plan.ClusterID); err != nil {
		return err
	}
	r := adminapi.RecoverRequest{Rev: plan.Rev, Timeout: c.Duration("timeout")}
	return runOperation(c, e, func(ctx context.Context, client *adminapi.Client,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Recover(ctx, r, p)
	})
}

func planText(s *screen, p adminapi.RecoverPlan, now time.Time) {
	s.line("%s would be a cluster of one: %s, same identity, %s", clean(p.Node), clean(p.ClusterID),
		plural(p.Keys, "minion key"))
	s.line("it knows everything up to log entry %d; its last contact with a majority was %s ago", p.Index,
		formatAge(now.Sub(p.LastContact)))
	s.line("lost: what was decided after that by the others, such as keys accepted, rejected or deleted; a key deleted there is accepted again")
	if len(p.Drop) == 0 {
		return
	}
	s.line("no members any more, until they join again:")
	rows := make([][]cell, 0, len(p.Drop))
	for _, d := range p.Drop {
		rows = append(rows, []cell{
			txt(d.ID), txt(d.Address), txt(string(d.Role)), txt(string(d.State)).withTint(stateTint(d.State)),
		})
	}
	s.printTable("  ", []string{"ID", "ADDRESS", "ROLE", "STATE"}, rows)
}
