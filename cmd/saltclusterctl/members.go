package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newMembersCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:   "members",
		Usage:  "list all nodes: role, state, versions; with --wide also term and lag",
		Flags:  []cli.Flag{console.WideFlag()},
		Action: console.WithoutArgs(e, runMembers),
	})
}

func runMembers(c *cli.Context, e *console.Env) error {
	return console.ShowAnswer(c, e, (*adminapi.Client).Members,
		func(s *console.Screen, m adminapi.Members) { membersTable(s, "", m.Members, time.Now()) })
}

// defaultPort is that of peers unless cluster_pool_port has another one.
const defaultPort = ":4520"

// membersTable fits into 80 columns unless the screen is wide: long ids and versions are shortened.
func membersTable(s *console.Screen, indent string, members []adminapi.Member, now time.Time) {
	rows := make([][]console.Cell, 0, len(members))
	for _, m := range members {
		if !s.Wide {
			role := string(m.Role)
			if m.Leader {
				role = "leader"
			}
			rows = append(rows, []console.Cell{
				console.Txt(m.ID).WithCut(), console.Txt(strings.TrimSuffix(m.Address, defaultPort)).WithCut(), console.Txt(role),
				stateCell(m, now), console.Txt(m.SaltVersion).WithCut(), console.Txt(m.Version).WithCut(),
				console.Num(m.Subscribers), readyCell(m).WithCut(),
			})
			continue
		}
		leader := ""
		if m.Leader {
			leader = "yes"
		}
		term := &m.Term
		if m.Term == 0 { // not known of one that does not answer
			term = nil
		}
		rows = append(rows, []console.Cell{
			console.Txt(m.ID), console.Txt(m.Address), console.Txt(string(m.Role)), stateCell(m, now), {Text: leader},
			console.Num(term),
			console.Txt(m.SaltVersion), console.Txt(m.Version), console.Num(m.Subscribers), console.Num(m.Lag), readyCell(m),
		})
	}
	if !s.Wide {
		s.PrintTable(indent, []string{
			"ID", "ADDRESS", "ROLE", "STATE", "SALT", "VERSION", "MINIONS", "READY",
		}, rows)
		return
	}
	s.PrintTable(indent, []string{
		"ID", "ADDRESS", "ROLE", "STATE", "LEADER", "TERM", "SALT", "SALTCLUSTERD", "SUBSCRIBERS", "LAG", "READY",
	}, rows)
}

// stateCell says of a member that is not alive for how long.
func stateCell(m adminapi.Member, now time.Time) console.Cell {
	text := string(m.State)
	if m.State != adminapi.StateAlive && !m.Since.IsZero() {
		text += " " + console.FormatAge(now.Sub(m.Since))
	}
	return console.Txt(text).WithTint(console.StateTint(m.State))
}

func readyCell(m adminapi.Member) console.Cell {
	switch {
	case m.Draining:
		return console.Txt("draining").WithTint(console.Yellow)
	case m.Ready == nil:
		return console.Txt("")
	case *m.Ready:
		return console.Txt("yes").WithTint(console.Green)
	case adminapi.SyncText(m.Sync) != "":
		return console.Txt("no: syncing " + adminapi.SyncText(m.Sync)).WithTint(console.Yellow)
	case len(m.Reasons) > 0:
		return console.Txt("no: " + strings.Join(m.Reasons, ", ")).WithTint(console.Red)
	default:
		return console.Txt("no").WithTint(console.Red)
	}
}
