package snapshot

import (
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func NewRecoverCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "recover",
		Usage: "when more than half of the voters are lost for good: create a new cluster from this node alone",
		Description: "Run it on one node while saltclusterd runs there: the one for which recover --dry-run shows the highest log entry. It keeps\n" +
			"the cluster's identity and the minion keys, so minions need no change; the AES key, the session seed and the gossip key are replaced. What\n" +
			"the others decided after the last contact is lost, and they are no longer members: when they come back they stop serving and\n" +
			"have to join again. Earlier join tokens become invalid.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force-new-cluster", Usage: "required, to confirm this; nothing is done without it"},
			console.YesFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be kept and lost"},
			console.TimeoutFlag(),
		},
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			if !c.Bool("force-new-cluster") && !c.Bool("dry-run") {
				return console.Usagef("saltclusterctl recover --dry-run shows what it would do",
					"recover creates a new cluster: add --force-new-cluster")
			}
			return runRecover(c, e)
		}),
	})
}

func runRecover(c *cli.Context, e *console.Env) error {
	plan, err := console.AskAdmin(c, e, (*adminapi.Client).RecoverPlan)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return e.PrintValue(c, plan, func(s *console.Screen) { planText(s, plan, time.Now()) })
	}
	warning := &console.Screen{}
	planText(warning, plan, time.Now())
	if _, err := e.Stderr.Write(warning.Bytes()); err != nil {
		return err
	}
	if err := e.ConsentByName(c, "the cluster's id", plan.ClusterID); err != nil {
		return err
	}
	r := adminapi.RecoverRequest{Rev: plan.Rev, Timeout: c.Duration("timeout")}
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Recover, r))
}

func planText(s *console.Screen, p adminapi.RecoverPlan, now time.Time) {
	s.Line("%s would become a cluster of one node: %s, same identity, %s", console.Clean(p.Node), console.Clean(p.ClusterID),
		wording.Plural(p.Keys, "minion key"))
	s.Line("it knows everything up to log entry %d; its last contact with a majority was %s ago", p.Index,
		console.FormatAge(now.Sub(p.LastContact)))
	s.Line("lost: later decisions of the others, such as keys accepted, rejected or deleted; a key deleted there is accepted again")
	s.Line("a cluster_secret that was replaced there is not replaced here: saltclusterctl rotate secret. " +
		"Earlier join tokens become invalid")
	if len(p.Drop) == 0 {
		return
	}
	s.Line("no longer members until they join again:")
	rows := make([][]console.Cell, 0, len(p.Drop))
	for _, d := range p.Drop {
		rows = append(rows, []console.Cell{
			console.Txt(d.ID), console.Txt(d.Address), console.Txt(string(d.Role)),
			console.Txt(string(d.State)).WithTint(console.StateTint(d.State)),
		})
	}
	s.PrintTable("  ", []string{"ID", "ADDRESS", "ROLE", "STATE"}, rows)
}
