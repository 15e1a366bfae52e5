package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/roots"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newStatusCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "status",
		Usage: "show the state of the cluster and this node, any problems, and what to type next",
		Flags: []cli.Flag{
			console.WideFlag(),
			&cli.BoolFlag{Name: "check",
				Usage: "exit with 10 when this node or the cluster has a problem that is more than a warning"},
			&cli.BoolFlag{Name: "all-nodes", Aliases: []string{"all"},
				Usage: "with --check: also when another node is down or not ready, even if this node has no problem; drained nodes are fine"},
		},
		Action: console.WithoutArgs(e, runStatus),
	})
}

func runStatus(c *cli.Context, e *console.Env) error {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	if err := e.PrintValue(c, st, func(s *console.Screen) { statusScreen(s, st, time.Now()) }); err != nil {
		return err
	}
	if c.Bool("check") {
		if hasFailure(st) {
			return console.SilentError(console.ExitProblems)
		}
		if c.Bool("all-nodes") && slices.ContainsFunc(st.Members, isUnwell) {
			return console.SilentError(console.ExitProblems)
		}
	}
	return nil
}

// hasFailure says whether a problem is more than a warning.
func hasFailure(st adminapi.Status) bool {
	return slices.ContainsFunc(st.Problems, func(p adminapi.Problem) bool { return p.Level == adminapi.LevelFail })
}

// isUnwell says of a member that it should serve and does not, or is away.
func isUnwell(m adminapi.Member) bool {
	return m.State != adminapi.StateAlive || !m.Draining && m.Role != adminapi.RoleWitness && (m.Ready == nil || !*m.Ready)
}

func statusScreen(s *console.Screen, st adminapi.Status, now time.Time) {
	clusterLine(s, st)
	if len(st.Members) > 0 {
		s.Line("")
		membersTable(s, "", st.Members, now)
	}
	s.Line("")
	nodeFacts(s, st.Node, now)
	s.Line("")
	printProblems(s, st.Problems)
}

func clusterLine(s *console.Screen, st adminapi.Status) {
	c, removed := st.Cluster, st.Removed
	if st.Starting {
		s.Line("%s  this node is starting", s.Paint(console.Bold, "cluster"))
		return
	}
	if c == nil && removed != "" {
		s.Wrapped(s.Paint(console.Bold, "cluster")+"  ", "none: %s", s.Paint(console.Red, console.Clean(removed)))
		s.Line("         to rejoin: saltclusterctl join PEER")
		return
	}
	if c == nil {
		s.Line("%s  none: this node belongs to no cluster yet", s.Paint(console.Bold, "cluster"))
		s.Line("         first node: saltclusterctl bootstrap; any other: saltclusterctl join PEER")
		return
	}
	leader := "leader " + console.Clean(c.Leader)
	if c.Leader == "" {
		leader = s.Paint(console.Red, "no leader")
	}
	quorum := fmt.Sprintf("quorum %d of %d (needs %d)", c.Quorum.Alive, c.Quorum.Voters, c.Quorum.Need)
	if !c.Quorum.OK {
		quorum = s.Paint(console.Red, quorum+": lost")
	}
	s.Wrapped(s.Paint(console.Bold, "cluster")+"  ", "%s  %s, term %d  %s  epoch %d", console.Clean(c.ID), leader, c.Term, quorum,
		c.Epoch)
	s.Line("         uuid %s", console.Clean(c.UUID))
}

func nodeFacts(s *console.Screen, n adminapi.Node, now time.Time) {
	up := ""
	if !n.Started.IsZero() {
		up = "  up " + console.FormatAge(now.Sub(n.Started))
	}
	s.Wrapped(s.Paint(console.Bold, "this node")+"  ", "%s  saltclusterd %s  salt %s%s", console.Clean(n.ID), console.Txt(n.Version).Text,
		console.Txt(n.SaltVersion).Text, up)
	rows := [][]console.Cell{}
	for _, e := range n.Edges {
		rows = append(rows, []console.Cell{{Text: e.Name}, {Text: edgeText(e)}})
	}
	if n.Upstream.Address != "" { // else no salt-master is looked at: a witness, or a node in no cluster
		rows = append(rows, upstreamRow(n.Upstream, now))
	}
	rows = append(rows, wallRow(n.Wall)...)
	rows = append(rows, returnRows(n.Returns, now)...)
	rows = append(rows, fileRow(n.Files)...)
	rows = append(rows, keyStoreRow(n.KeyStore)...)
	rows = append(rows, roots.RootsRow(n.Roots)...)
	rows = append(rows, jobRows(n.Jobs)...)
	rows = append(rows, syncRows(n.Sync, now)...)
	if n.Ready && !n.Draining {
		rows = append(rows, []console.Cell{{Text: "ready"}, console.Txt("yes").WithTint(console.Green)})
	} else {
		rows = append(rows, []console.Cell{{Text: "ready"}, console.Txt(notReady(n)).WithTint(console.Red)})
	}
	for _, r := range n.Reasons {
		text, tint := r.Check+": "+r.Message, console.Red
		if r.Level != adminapi.LevelFail {
			tint = console.Yellow
		}
		rows = append(rows, []console.Cell{{}, console.Txt(text).WithTint(tint)})
		if r.Hint != "" {
			rows = append(rows, []console.Cell{{}, console.Txt("-> " + r.Hint)})
		}
	}
	s.PrintTable("  ", nil, rows)
}

// keyStoreRow is about a master that has its keys in a store of its own.
func keyStoreRow(k *adminapi.KeyStore) [][]console.Cell {
	if k == nil {
		return nil
	}
	text, tint := fmt.Sprintf("%s matches the files  %s  %.0f %% full", console.Clean(k.Driver), wording.Plural(k.Keys, "key"),
		100*k.Fill), console.Green
	switch {
	case k.Error != "":
		text, tint = console.Clean(k.Driver)+" not in step: "+console.Clean(k.Error), console.Red
	case k.Busy:
		text, tint = console.Clean(k.Driver)+" is being brought up to date", console.Yellow
	case k.Lacking > 0:
		text, tint = text+fmt.Sprintf("  no room for %d", k.Lacking), console.Yellow
	}
	return [][]console.Cell{{{Text: "keys"}, console.Cell{Text: text}.WithTint(tint)}}
}

func notReady(n adminapi.Node) string {
	if n.Draining {
		return "no: draining"
	}
	return "no"
}

func edgeText(e adminapi.Edge) string {
	parts := []string{console.Clean(strings.Join(e.Addresses, " ")), wording.Plural(e.Connections, "connection")}
	if e.InFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", e.InFlight))
	}
	if e.Refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused", e.Refused))
	}
	if e.Cut > 0 {
		parts = append(parts, fmt.Sprintf("%d cut", e.Cut))
	}
	return strings.Join(parts, "  ")
}

func upstreamRow(u adminapi.Upstream, now time.Time) []console.Cell {
	state, tint := "down", console.Red
	if u.Up {
		state, tint = "up", console.Plain
	}
	if !u.Since.IsZero() {
		state += " for " + console.FormatAge(now.Sub(u.Since))
	}
	parts := []string{console.Txt(u.Address).Text, state}
	if u.Up {
		parts = append(parts, wording.Plural(u.Connections, "connection"))
	}
	if u.Queued > 0 {
		parts = append(parts, fmt.Sprintf("%d queued", u.Queued))
	}
	for _, f := range []struct {
		ok   bool
		text string
	}{{u.Subscribed, "not subscribed"}, {u.SignedIn, "not signed in"}} {
		if u.Up && !f.ok {
			parts = append(parts, f.text)
			tint = console.Yellow
		}
	}
	if u.Error != "" {
		parts = append(parts, console.Clean(u.Error))
	}
	return []console.Cell{{Text: "master"}, console.Cell{Text: strings.Join(parts, "  ")}.WithTint(tint)}
}

func printProblems(s *console.Screen, list []adminapi.Problem) {
	if len(list) == 0 {
		s.Line("%s", s.Paint(console.Green, "no problems"))
		return
	}
	for _, p := range list {
		mark, tint := "warning:", console.Yellow
		if p.Level == adminapi.LevelFail {
			mark, tint = "failure:", console.Red
		}
		where := ""
		if p.Node != "" {
			where = console.Clean(p.Node) + ": "
		}
		s.Wrapped(s.Paint(tint, mark)+" ", "%s%s", where, console.Clean(p.Message))
		if p.Hint != "" {
			s.Wrapped("     -> ", "%s", console.Clean(p.Hint))
		}
	}
}
