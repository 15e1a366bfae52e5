package corpus

import (
	"slices"
	"strings"
)

// Exception is a difference that is meant to be. docs/reference/differences.md says why.
type Exception struct {
	What string // the heading there
	is   func(d Difference) bool

	// effect tells what else a request does whose answer is such a difference: by its mark, or where it has none, no more
	// of these than of those in answers.
	effect func(d Difference) bool
}

// Texts of answers that hold no value.
const (
	badLoad = "not sealed: bad load"
	raised  = `""` // Python has raised
	none    = "null"
)

// noEnvironments are values of a pillarenv that saltclusterd refuses.
var noEnvironments = append([]string{"'../'"}, containers...)

// containers are the values that are lists or maps.
var containers = []string{"{}", "[]", "[None]", "{'a': 1}"}

// Intended lists what is meant to differ.
var Intended = []Exception{
	{What: "The empty list of minions", is: func(d Difference) bool {
		return strings.HasPrefix(d.Where, inFile+"jobs/") && strings.HasSuffix(d.Where, "/.minions.p") && d.Bare == nothing &&
			d.Ours == "[]" ||
			d.in(inReply, "_return", "jid") && d.Bare == raised && d.Ours == none
	}},
	{What: "Returns of jobs whose id is a path, a list or a map", is: func(d Difference) bool {
		for _, id := range []string{`"../"`, `"\n"`, "[", "{"} {
			if d.Where == inEvent && strings.Contains(d.Bare, `"jid":`+id) {
				return d.Ours == nothing
			}
		}
		for _, id := range []string{`"'../'"/`, `"'\\n'"/`, "[", "{"} {
			if strings.HasPrefix(d.Where, inFile+"jobs/of "+id) {
				return d.Ours == nothing
			}
		}
		return false
	}},
	{What: "Events under tags of the masters", is: func(d Difference) bool {
		return d.Where == inEvent && strings.HasPrefix(d.Bare, "salt/key") &&
			strings.Contains(d.Bare, `"cmd":"_minion_event"`) && d.Ours == nothing
	}},
	{
		What: "Lists of events with invalid items",
		is: func(d Difference) bool {
			answer := d.Where == inReply && d.Cmd == "_minion_event" && d.Mutation.Field == "events" && d.Bare == raised &&
				d.Ours == none
			return answer && (d.Mutation.Kind == Within || d.Mutation.Kind == OtherKind && d.Mutation.Value == "[None]") ||
				d.in(inEvent, "_minion_event", "pretag") && slices.Contains(containers, d.Mutation.Value) && d.Ours == nothing
		},
		effect: func(d Difference) bool { return d.Where == inEvent && d.Cmd == "_minion_event" },
	},
	{
		What: "Pillars of an environment that is a path, a list or a map",
		is: func(d Difference) bool {
			return (d.in(inReply, "_pillar", "pillarenv") || d.in(inReply, "_pillar", "saltenv")) && d.Ours == badLoad &&
				slices.Contains(noEnvironments, d.Mutation.Value) ||
				slices.ContainsFunc(noEnvironments, func(env string) bool {
					return d.Where == inFile+"pillar/corpus:"+strings.Trim(env, "'")+".p" && d.Ours == nothing
				})
		},
		effect: func(d Difference) bool {
			return d.Where == inEvent && strings.HasPrefix(d.Bare,
				`minion/refresh/corpus {"Minion data cache refresh":"corpus",`) && d.Ours == nothing
		},
	},
}

// in says whether a difference is in that place, and about a request of which that field is of another kind.
func (d Difference) in(where, cmd, field string) bool {
	return d.Where == where && d.Cmd == cmd && d.Mutation.Kind == OtherKind && d.Mutation.Field == field
}

// meant says what of Intended a difference is; empty: none. Answers counts those in answers, which come first.
func meant(d Difference, answers map[string]int) string {
	for _, e := range Intended {
		if e.is(d) {
			if d.Where == inReply {
				answers[e.What]++
				if d.Mutation.Mark != "" {
					answers[e.What+d.Mutation.Mark]++
				}
			}
			return e.What
		}
		if e.effect == nil || !e.effect(d) {
			continue
		}
		if mark := d.Mutation.Mark; mark != "" && answers[e.What+mark] > 0 {
			return e.What
		} else if mark == "" && answers[e.What] > 0 {
			answers[e.What]--
			return e.What
		}
	}
	return ""
}
