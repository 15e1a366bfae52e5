package parity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// normaliser takes out what differs between any two runs of the same command.
type normaliser struct {
	drop      []*regexp.Regexp
	unordered bool     // the order of lines says nothing
	hosts     []string // names of the master's host
	dirs      []string // directories of the lab
}

var scrubs = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b20\d{18}(_\d+)?\b`), "<jid>"},
	{regexp.MustCompile(`\d{4}, [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2}\.\d+`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})?`), "<time>"},
	{regexp.MustCompile(`\b\d{2}:\d{2}:\d{2}\.\d+\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){15,31}\b`), "<fingerprint>"},
	{regexp.MustCompile(`\b10\.99\.0\.\d+\b|\b127\.\d+\.\d+\.[12]\b`), "<address>"},
	{regexp.MustCompile(` *\b\d+(\.\d+)? (ms|s|seconds)\b`), " <n> <unit>"},
	{regexp.MustCompile(`\bmin\d+-\d+(, min\d+-\d+)+`), "<minions>"}, // a list for people, in the order of their answers
	{regexp.MustCompile(`(?m)^ +\d{3,}$`), "<number>"},               // a process id on a line of its own
	{regexp.MustCompile(`(?i)\b(pid:?) *\d+`), "$1 <n>"},
	{regexp.MustCompile(`(?m)^-{10,}$`), "----"}, // as long as the job id and the user's name make it
	{regexp.MustCompile(`/tmp/(tmp|__salt\.tmp\.)[A-Za-z0-9_]+`), "<tmp>"},
}

// volatile are keys of JSON output whose values differ from run to run.
var volatile = []string{"pid", "duration", "start_time", "_stamp", "StartTime", "jid", "__run_num__", "runas",
	"total_duration"}

func (n normaliser) text(s string) string {
	for _, d := range n.dirs {
		s = strings.ReplaceAll(s, d, "<lab>")
	}
	for _, r := range scrubs {
		s = r.find.ReplaceAllString(s, r.with)
	}
	for _, h := range n.hosts {
		s = regexp.MustCompile(`(<lab>/|\b)`+regexp.QuoteMeta(h)+`(_master)?\b`).ReplaceAllString(s, "$1<master>$2")
	}
	return s
}

// output normalises standard output. Documents of JSON are merged, in the order of their text, so that the order in
// which minions answer does not matter; anything else is compared as lines, in blocks of one minion each.
func (n normaliser) output(s string) string {
	if docs, err := documents(s); err == nil && len(docs) > 0 {
		var texts []string
		for _, d := range docs {
			texts = append(texts, pretty(n.value("", d)))
		}
		slices.Sort(texts)
		return strings.Join(texts, "\n")
	}
	lines := n.lines(s)
	if !n.unordered {
		return strings.Join(blocks(lines), "\n")
	}
	return strings.Join(sorted(lines), "\n")
}

// sorted lines without those that hold only braces.
func sorted(lines []string) []string {
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Trim(l, " {}[],") == "" })
	slices.Sort(lines)
	return lines
}

func pretty(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unclosed is what 3008's runners complain about themselves, more or less often.
var unclosed = regexp.MustCompile(`unclosed .* object at 0x`)

// errors normalises standard error: a set of lines, in which the order says nothing.
func (n normaliser) errors(s string) string {
	lines := slices.DeleteFunc(n.lines(s), unclosed.MatchString)
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

func (n normaliser) lines(s string) []string {
	var out []string
	for l := range strings.SplitSeq(n.text(s), "\n") {
		l = strings.TrimRight(l, " \t\r")
		if l == "" || slices.ContainsFunc(n.drop, func(r *regexp.Regexp) bool { return r.MatchString(l) }) {
			continue
		}
		out = append(out, l)
	}
	return out
}

// blocks sorts groups of lines that begin with an unindented line, which is how every outputter of Salt separates
// minions.
func blocks(lines []string) []string {
	var groups []string
	for _, l := range lines {
		if len(groups) == 0 || !strings.HasPrefix(l, " ") {
			groups = append(groups, l)
			continue
		}
		groups[len(groups)-1] += "\n" + l
	}
	slices.Sort(groups)
	return groups
}

// documents decodes a stream of JSON documents.
func documents(s string) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var docs []any
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, v)
	}
}

func (n normaliser) value(key string, v any) any {
	if slices.Contains(volatile, key) && v != nil {
		return "<" + key + ">"
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[n.text(k)] = n.value(k, e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = n.value("", e)
		}
		return out
	case string:
		if key == "comment" { // of file.recurse: a set of directories, in any order
			return strings.Join(sorted(strings.Split(n.text(v), "\n")), "\n")
		}
		return n.text(v)
	}
	return v
}
