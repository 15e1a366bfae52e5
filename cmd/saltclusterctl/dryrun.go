package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only say what would be done"}
}

// forecast is what a verb would do, as far as can be told beforehand.
type forecast struct {
	Node    string   `json:"node,omitempty"`    // that it is about
	Refused string   `json:"refused,omitempty"` // why it would not be done
	Effects []string `json:"effects"`
}

func showForecast(c *cli.Context, e *env, tell func(adminapi.Status, adminapi.Member) forecast) error {
	st, err := askAdmin(c, e, (*adminapi.Client).Status)
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
	return e.showPlan(c, tell(st, st.Members[at]))
}

func (e *env) showPlan(c *cli.Context, f forecast) error {
	return e.printValue(c, f, func(s *screen) {
		for _, effect := range f.Effects {
			s.line("%s", clean(effect))
		}
		if f.Refused != "" {
			s.line("%s", s.paint(red, "it would be refused: "+clean(f.Refused)))
			return
		}
		s.line("nothing was done")
	})
}

const undecidable = "no majority of the cluster can be reached, so nothing can be decided"

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
		return m.ID + " does not answer: its minions are with the others already, or cut off with it"
	}
	n := 0
	if m.Subscribers != nil {
		n = *m.Subscribers
	}
	rest := otherServing(st, m.ID)
	if len(rest) == 0 {
		return fmt.Sprintf("%s of %s would find no other node", plural(n, "minion"), m.ID)
	}
	return fmt.Sprintf("%s of %s would go to %s", plural(n, "minion"), m.ID, strings.Join(rest, ", "))
}

func drainForecast(st adminapi.Status, m adminapi.Member) forecast {
	f := forecast{Node: m.ID, Effects: []string{leavingText(st, m)}}
	if m.Leader {
		f.Effects = append(f.Effects, "another node would lead")
	}
	if st.Cluster != nil && !st.Cluster.Quorum.OK {
		f.Refused = undecidable
		return f
	}
	if m.Draining {
		f.Effects = []string{m.ID + " is drained, or being drained, already"}
	} else if len(otherServing(st, m.ID)) == 0 {
		f.Refused = "no other node serves minions (--force does it all the same)"
	}
	return f
}

func removeForecast(st adminapi.Status, m adminapi.Member, force bool) forecast {
	f := forecast{Node: m.ID, Effects: []string{leavingText(st, m)}}
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
	f.Effects = append(f.Effects, fmt.Sprintf("%s would be left, %d of them there; a majority is %d",
		plural(voters, "voter"), alive, need))
	if text := asideForecast(m, force); text != "" {
		f.Effects = append(f.Effects, text)
	}
	f.Effects = append(f.Effects, "to come back "+m.ID+" has to join again: saltclusterctl join PEER there")
	switch {
	case !st.Cluster.Quorum.OK: // with --force, too
		f.Refused = undecidable
	case masters == 0:
		f.Refused = "it is the last node with a salt-master"
	case voters == 0:
		f.Refused = "it is the last voter"
	case alive < need && force:
		f.Effects = append(f.Effects,
			"the rest would be no majority: only saltclusterctl recover --force-new-cluster would help then")
	case alive < need:
		f.Refused = "the rest would be no majority (--force does it all the same)"
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
			plural(m.Unanswered, "return"), m.ID)
	}
	return fmt.Sprintf("%s that its salt-master does not answer would be handed over to the others; what is damaged keeps it from being removed",
		plural(m.Unanswered, "return"))
}
