package corpus

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// View is what a master was seen to do.
type View struct {
	Asked   []Request
	Replies []string // to each of them
	Events  []string // on its bus, in any order
	// in its cachedir, decoded by Salt, in any order: those of jobs that masters have published have one name
	Files map[string][]string
}

// Scrub takes out what differs between any two masters: where they are, when it was, and jobs that they have published
// themselves.
type Scrub struct {
	Words map[string]string // of this master, and what stands for each
	Jobs  map[string]bool   // ids that all masters hear of
}

var (
	job   = regexp.MustCompile(`\b20\d{18}(_\d+)?\b`)
	mark  = regexp.MustCompile(`20200101\d{12}|variant-\d+-`)
	stamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+`)
)

// JobsOf are the ids of jobs that requests name.
func JobsOf(all []Request) map[string]bool {
	out := map[string]bool{}
	for _, r := range all {
		for _, id := range job.FindAllString(string(r.Load), -1) {
			out[id] = true
		}
	}
	return out
}

// Text is any text of a master's, scrubbed.
func (s Scrub) Text(text string) string {
	// one may be part of another
	words := slices.SortedFunc(maps.Keys(s.Words), func(a, b string) int { return len(b) - len(a) })
	for _, word := range words {
		text = strings.ReplaceAll(text, word, s.Words[word])
	}
	text = job.ReplaceAllStringFunc(text, func(id string) string {
		if s.Jobs[id] {
			return id
		}
		return "<jid>"
	})
	return stamp.ReplaceAllString(text, "<time>")
}

// Value is msgpack as scrubbed text, maps in the order of their keys.
func (s Scrub) Value(raw []byte) string {
	v, rest, err := msgp.ReadIntfBytes(raw)
	if err != nil || len(rest) > 0 { // a map with keys that are not text, or not msgpack at all
		return "raw " + hex.EncodeToString(raw)
	}
	text, err := json.Marshal(plain(v))
	if err != nil {
		return "raw " + hex.EncodeToString(raw)
	}
	return s.Text(string(text))
}

// plain makes bytes texts: which of them a master writes differs by version, not by master.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	}
	return v
}

// Difference between what was expected and what was seen.
type Difference struct {
	Where string // "reply", "event", or the name of a file

	// The request. For events and files it is known only of a mutant, whose mark they bear.
	Asked, Cmd string
	Mutation   Mutation

	Bare, Ours string
}

func (d Difference) String() string {
	where := d.Where
	if d.Asked != "" {
		where += " to " + d.Asked
	}
	return fmt.Sprintf("%.400s\n bare %.1000q\n ours %.1000q", where, d.Bare, d.Ours)
}

// Places that a Difference is in, beside files.
const (
	inReply = "reply"
	inEvent = "event"
	inFile  = "file "
)

const nothing = "(nothing)"

// Diff compares what a bare master and ours did. Intended are how many differences there are of each kind of Intended.
func Diff(bare, ours *View) (out []Difference, intended map[string]int) {
	intended = map[string]int{}
	answers := map[string]int{}
	add := func(d Difference) {
		if what := meant(d, answers); what != "" {
			intended[what]++
		} else {
			out = append(out, d)
		}
	}
	for i, asked := range bare.Asked {
		if a, b := asked.ordered(bare.Replies[i]), asked.ordered(ours.Replies[i]); a != b {
			add(Difference{inReply, asked.String(), asked.Cmd, asked.Mutation, a, b})
		}
	}
	marked := map[string]Request{}
	for _, asked := range bare.Asked {
		marked[asked.Mutation.Mark] = asked
	}
	one := func(where, a, b string) {
		d := Difference{Where: where, Bare: a, Ours: b}
		for _, mark := range mark.FindAllString(where+" "+a+" "+b, -1) {
			if asked, ok := marked[mark]; ok {
				d.Asked, d.Cmd, d.Mutation = asked.String(), asked.Cmd, asked.Mutation
			}
		}
		add(d)
	}
	sides := func(where string, a, b []string) {
		for _, text := range less(a, b) {
			one(where, text, nothing)
		}
		for _, text := range less(b, a) {
			one(where, nothing, text)
		}
	}
	sides(inEvent, bare.Events, ours.Events)
	for _, name := range slices.Sorted(maps.Keys(bare.Files)) {
		sides(inFile+name, bare.Files[name], ours.Files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(ours.Files)) {
		if _, ok := bare.Files[name]; !ok {
			sides(inFile+name, nil, ours.Files[name])
		}
	}
	return out, intended
}

// ordered is a reply whose order says nothing put in order: the names of environments are a set of Python's.
func (r Request) ordered(reply string) string {
	var names []string
	if r.Cmd != "_file_envs" || json.Unmarshal([]byte(reply), &names) != nil {
		return reply
	}
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

// less is a without what is also in b, as often as it is there.
func less(a, b []string) []string {
	have := map[string]int{}
	for _, e := range b {
		have[e]++
	}
	return slices.DeleteFunc(slices.Clone(a), func(e string) bool { have[e]--; return have[e] >= 0 })
}
