package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newStatusCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "status",
		Usage: "show on one screen how the cluster and this node are, what is wrong and what to type next",
		Flags: []cli.Flag{
			wideFlag(),
			&cli.BoolFlag{Name: "check",
				Usage: "exit with 10 when there is a problem that is more than a warning, for this node or the cluster"},
			&cli.BoolFlag{Name: "all",
				Usage: "with --check: also when another node is away or not ready, though nothing is wrong here; drained ones are well"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runStatus(c, e)
		},
	})
}

func runStatus(c *cli.Context, e *env) error {
	st, err := askAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	if err := e.printValue(c, st, func(s *screen) { statusScreen(s, st, time.Now()) }); err != nil {
		return err
	}
	if c.Bool("check") {
		for _, p := range st.Problems {
			if p.Level == adminapi.LevelFail {
				return &silentError{exitProblems}
			}
		}
		if c.Bool("all") && slices.ContainsFunc(st.Members, isUnwell) {
			return &silentError{exitProblems}
		}
	}
	return nil
}

// isUnwell says of a member that it should serve and does not, or is away.
func isUnwell(m adminapi.Member) bool {
	return m.State != adminapi.StateAlive || !m.Draining && m.Role != adminapi.RoleWitness && (m.Ready == nil || !*m.Ready)
}

func statusScreen(s *screen, st adminapi.Status, now time.Time) {
	clusterLine(s, st)
	if len(st.Members) > 0 {
		s.line("")
		membersTable(s, "", st.Members, now)
	}
	s.line("")
	nodeFacts(s, st.Node, now)
	s.line("")
	printProblems(s, st.Problems)
}

func clusterLine(s *screen, st adminapi.Status) {
	c, removed := st.Cluster, st.Removed
	if st.Starting {
		s.line("%s  this node is starting", s.paint(bold, "cluster"))
		return
	}
	if c == nil && removed != "" {
		s.line("%s  none: %s", s.paint(bold, "cluster"), s.paint(red, clean(removed)))
		s.line("         saltclusterctl join PEER takes it in again")
		return
	}
	if c == nil {
		s.line("%s  none: this node belongs to no cluster yet", s.paint(bold, "cluster"))
		s.line("         first node: saltclusterctl bootstrap; any other: saltclusterctl join PEER")
		return
	}
	leader := "leader " + clean(c.Leader)
	if c.Leader == "" {
		leader = s.paint(red, "no leader")
	}
	quorum := fmt.Sprintf("quorum %d of %d (needs %d)", c.Quorum.Alive, c.Quorum.Voters, c.Quorum.Need)
	if !c.Quorum.OK {
		quorum = s.paint(red, quorum+": lost")
	}
	s.line("%s  %s  %s, term %d  %s  epoch %d", s.paint(bold, "cluster"), clean(c.ID), leader, c.Term, quorum, c.Epoch)
	s.line("         uuid %s", clean(c.UUID))
}

func nodeFacts(s *screen, n adminapi.Node, now time.Time) {
	up := ""
	if !n.Started.IsZero() {
		up = "  up " + formatAge(now.Sub(n.Started))
	}
	s.line("%s  %s  saltclusterd %s  salt %s%s", s.paint(bold, "this node"), clean(n.ID), txt(n.Version).text,
		txt(n.SaltVersion).text, up)
	rows := [][]cell{}
	for _, e := range n.Edges {
		rows = append(rows, []cell{{text: e.Name}, {text: edgeText(e)}})
	}
	if n.Upstream.Address != "" { // else no salt-master is looked at: a witness, or a node in no cluster
		rows = append(rows, upstreamRow(n.Upstream, now))
	}
	rows = append(rows, wallRow(n.Wall)...)
	rows = append(rows, returnRows(n.Returns, now)...)
	rows = append(rows, fileRow(n.Files)...)
	rows = append(rows, keyStoreRow(n.KeyStore)...)
	rows = append(rows, rootsRow(n.Roots)...)
	rows = append(rows, jobRows(n.Jobs)...)
	rows = append(rows, syncRows(n.Sync, now)...)
	if n.Ready && !n.Draining {
		rows = append(rows, []cell{{text: "ready"}, txt("yes").withTint(green)})
	} else {
		rows = append(rows, []cell{{text: "ready"}, txt(notReady(n)).withTint(red)})
	}
	for _, r := range n.Reasons {
		text, tint := r.Check+": "+r.Message, red
		if r.Level != adminapi.LevelFail {
			tint = yellow
		}
		rows = append(rows, []cell{{}, txt(text).withTint(tint)})
		if r.Hint != "" {
			rows = append(rows, []cell{{}, txt("-> " + r.Hint)})
		}
	}
	s.printTable("  ", nil, rows)
}

// keyStoreRow is about a master that has its keys in a store of its own.
func keyStoreRow(k *adminapi.KeyStore) [][]cell {
	if k == nil {
		return nil
	}
	text, tint := fmt.Sprintf("%s in step with the files  %s  %.0f %% full", clean(k.Driver), plural(k.Keys, "key"),
		100*k.Fill), green
	switch {
	case k.Error != "":
		text, tint = clean(k.Driver)+" not in step: "+clean(k.Error), red
	case k.Busy:
		text, tint = clean(k.Driver)+" is being brought up to date", yellow
	case k.Lacking > 0:
		text, tint = text+fmt.Sprintf("  no room for %d", k.Lacking), yellow
	}
	return [][]cell{{{text: "keys"}, cell{text: text}.withTint(tint)}}
}

func notReady(n adminapi.Node) string {
	if n.Draining {
		return "no: draining"
	}
	return "no"
}

func edgeText(e adminapi.Edge) string {
	parts := []string{clean(strings.Join(e.Addresses, " ")), plural(e.Connections, "connection")}
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

func upstreamRow(u adminapi.Upstream, now time.Time) []cell {
	state, tint := "down", red
	if u.Up {
		state, tint = "up", plain
	}
	if !u.Since.IsZero() {
		state += " for " + formatAge(now.Sub(u.Since))
	}
	parts := []string{"salt-master " + txt(u.Address).text, state}
	if u.Up {
		parts = append(parts, plural(u.Connections, "connection"))
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
			tint = yellow
		}
	}
	if u.Error != "" {
		parts = append(parts, clean(u.Error))
	}
	return []cell{{text: "upstream"}, cell{text: strings.Join(parts, "  ")}.withTint(tint)}
}

func printProblems(s *screen, list []adminapi.Problem) {
	if len(list) == 0 {
		s.line("%s", s.paint(green, "no problems"))
		return
	}
	for _, p := range list {
		mark, tint := "warning:", yellow
		if p.Level == adminapi.LevelFail {
			mark, tint = "failure:", red
		}
		where := ""
		if p.Node != "" {
			where = clean(p.Node) + ": "
		}
		s.line("%s %s%s", s.paint(tint, mark), where, clean(p.Message))
		if p.Hint != "" {
			s.line("     -> %s", clean(p.Hint))
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// formatAge shows the two greatest units of a time span.
func formatAge(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
