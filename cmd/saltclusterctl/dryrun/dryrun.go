package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func DryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only show what would be done"}
}

// Forecast is what a verb would do, as far as can be told beforehand.
type Forecast struct {
	Node    string   `json:"node,omitempty"`    // that it is about
	Refused string   `json:"refused,omitempty"` // why it would not be done
	Effects []string `json:"effects"`
}

func ShowForecast(c *cli.Context, e *console.Env, tell func(adminapi.Status, adminapi.Member) Forecast) error {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(st.Members, func(m adminapi.Member) bool {
		return m.ID == c.Args().First() || c.NArg() == 0 && m.Self
	})
	if at < 0 {
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members lists them", "no member is called %q",
			c.Args().First())
	}
	return ShowPlan(e, c, tell(st, st.Members[at]))
}

func ShowPlan(e *console.Env, c *cli.Context, f Forecast) error {
	return e.PrintValue(c, f, func(s *console.Screen) {
		for _, effect := range f.Effects {
			s.Line("%s", console.Clean(effect))
		}
		if f.Refused != "" {
			s.Line("%s", s.Paint(console.Red, "it would be refused: "+console.Clean(f.Refused)))
			return
		}
		s.Line("nothing was done")
	})
}

const Undecidable = "no majority of the cluster can be reached, so nothing can be decided"

// otherServing are the nodes that would serve minions without one.
func otherServing(st adminapi.Status, but string) (ids []string) {
	for _, m := range st.Members {
		if m.ID != but && m.Role != adminapi.RoleWitness && m.State == adminapi.StateAlive && !m.Draining &&
			(m.Ready == nil || *m.Ready) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func leavingText(st adminapi.Status, m adminapi.Member) string {
	if m.State != adminapi.StateAlive {
		return m.ID + " does not answer: its minions are already on other nodes, or cut off with it"
	}
	n := 0
	if m.Subscribers != nil {
		n = *m.Subscribers
	}
	rest := otherServing(st, m.ID)
	if len(rest) == 0 {
		return fmt.Sprintf("%s of %s would find no other node", wording.Plural(n, "minion"), m.ID)
	}
	return fmt.Sprintf("%s of %s would go to %s", wording.Plural(n, "minion"), m.ID, strings.Join(rest, ", "))
}

func DrainForecast(st adminapi.Status, m adminapi.Member) Forecast {
	f := Forecast{Node: m.ID, Effects: []string{leavingText(st, m)}}
	if m.Leader {
		f.Effects = append(f.Effects, "another node would lead")
	}
	if st.Cluster != nil && !st.Cluster.Quorum.OK {
		f.Refused = Undecidable
		return f
	}
	if m.Draining {
		f.Effects = []string{m.ID + " is drained, or being drained, already"}
	} else if len(otherServing(st, m.ID)) == 0 {
		f.Refused = "no other node serves minions (--force overrides this)"
	}
	return f
}

func RemoveForecast(st adminapi.Status, m adminapi.Member, force bool) Forecast {
	f := Forecast{Node: m.ID, Effects: []string{leavingText(st, m)}}
	if m.Role == adminapi.RoleWitness { // it has none
		f.Effects = nil
	}
	if st.Cluster == nil {
		return f
	}
	voters, alive, masters := 0, 0, 0
	for _, o := range st.Members {
		if o.ID == m.ID {
			continue
		}
		if o.Role != adminapi.RoleWitness {
			masters++
		}
		if slices.Contains(st.Cluster.VoterIDs, o.ID) {
			voters++
			if o.State == adminapi.StateAlive {
				alive++
			}
		}
	}
	need := voters/2 + 1
	f.Effects = append(f.Effects, fmt.Sprintf("%s would remain, %d of them alive; a majority is %d",
		wording.Plural(voters, "voter"), alive, need))
	if text := asideForecast(m, force); text != "" {
		f.Effects = append(f.Effects, text)
	}
	f.Effects = append(f.Effects, "to come back "+m.ID+" has to join again: saltclusterctl join PEER there")
	switch {
	case !st.Cluster.Quorum.OK: // with --force, too
		f.Refused = Undecidable
	case masters == 0:
		f.Refused = "it is the last node with a salt-master"
	case voters == 0:
		f.Refused = "it is the last voter"
	case alive < need && force:
		f.Effects = append(f.Effects,
			"the rest would not be a majority: only saltclusterctl recover --force-new-cluster would help then")
	case alive < need:
		f.Refused = "the rest would not be a majority (--force overrides this)"
	}
	return f
}

// asideForecast says what would become of the returns that a node's salt-master does not answer.
func asideForecast(m adminapi.Member, force bool) string {
	switch {
	case m.Role == adminapi.RoleWitness:
		return ""
	case m.State != adminapi.StateAlive:
		return "returns that its salt-master did not answer, if it has put any aside, would stay on " + m.ID
	case m.Unanswered == 0:
		return ""
	case force:
		return fmt.Sprintf("%s that its salt-master does not answer would stay on %s; no other node has them",
			wording.Plural(m.Unanswered, "return"), m.ID)
	}
	return fmt.Sprintf("%s that its salt-master does not answer would be handed over to the others; damaged returns prevent its removal",
		wording.Plural(m.Unanswered, "return"))
}
