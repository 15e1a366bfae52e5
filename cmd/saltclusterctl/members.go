package main

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

// askTimeout bounds every verb that only asks, unless --timeout says otherwise; the daemon's own limit is shorter.
const askTimeout = 15 * time.Second

func newMembersCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "members",
		Usage: "list all nodes: role, state, versions; with --wide also term and lag",
		Flags: []cli.Flag{wideFlag()},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runMembers(c, e)
		},
	})
}

func runMembers(c *cli.Context, e *env) error {
	m, err := askAdmin(c, e, (*adminapi.Client).Members)
	if err != nil {
		return err
	}
	return e.printValue(c, m, func(s *screen) { membersTable(s, "", m.Members, time.Now()) })
}

// askAdmin calls a reading verb of the admin API.
func askAdmin[T any](c *cli.Context, e *env, call func(*adminapi.Client, context.Context) (T, error)) (T, error) {
	var none T
	if err := checkOperation(c); err != nil {
		return none, err
	}
	limit := c.Duration("timeout")
	if limit == 0 {
		limit = askTimeout
	}
	ctx, cancel := context.WithTimeout(c.Context, limit)
	defer cancel()
	client := e.openClient(c)
	defer client.Close()
	defer e.showWaiting("saltclusterd's answer, for %s at most (--timeout)", limit)()
	return call(client, ctx)
}

// defaultPort is that of peers unless cluster_pool_port has another one.
const defaultPort = ":4520"

// membersTable fits into 80 columns, with an id of up to seven characters, unless the screen is wide.
func membersTable(s *screen, indent string, members []adminapi.Member, now time.Time) {
	rows := make([][]cell, 0, len(members))
	for _, m := range members {
		if !s.wide {
			role := string(m.Role)
			if m.Leader {
				role = "leader"
			}
			rows = append(rows, []cell{
				txt(m.ID), txt(strings.TrimSuffix(m.Address, defaultPort)), txt(role), stateCell(m, now),
				txt(m.SaltVersion), txt(m.Version), num(m.Subscribers), readyCell(m),
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
		rows = append(rows, []cell{
			txt(m.ID), txt(m.Address), txt(string(m.Role)), stateCell(m, now), {text: leader}, num(term),
			txt(m.SaltVersion), txt(m.Version), num(m.Subscribers), num(m.Lag), readyCell(m),
		})
	}
	if !s.wide {
		s.printTable(indent, []string{
			"ID", "ADDRESS", "ROLE", "STATE", "SALT", "VERSION", "MINIONS", "READY",
		}, rows)
		return
	}
	s.printTable(indent, []string{
		"ID", "ADDRESS", "ROLE", "STATE", "LEADER", "TERM", "SALT", "SALTCLUSTERD", "SUBSCRIBERS", "LAG", "READY",
	}, rows)
}

// stateCell says of a member that is not alive for how long.
func stateCell(m adminapi.Member, now time.Time) cell {
	text := string(m.State)
	if m.State != adminapi.StateAlive && !m.Since.IsZero() {
		text += " " + formatAge(now.Sub(m.Since))
	}
	return txt(text).withTint(stateTint(m.State))
}

func stateTint(state adminapi.State) string {
	switch state {
	case adminapi.StateAlive:
		return green
	case adminapi.StateFailed:
		return red
	}
	return plain
}

func readyCell(m adminapi.Member) cell {
	switch {
	case m.Draining:
		return txt("draining").withTint(yellow)
	case m.Ready == nil:
		return txt("")
	case *m.Ready:
		return txt("yes").withTint(green)
	case adminapi.SyncText(m.Sync) != "":
		return txt("no: syncing " + adminapi.SyncText(m.Sync)).withTint(yellow)
	case len(m.Reasons) > 0:
		return txt("no: " + strings.Join(m.Reasons, ", ")).withTint(red)
	default:
		return txt("no").withTint(red)
	}
}
