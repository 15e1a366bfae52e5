package guides

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stages are where runnable blocks may be run; see the package's comment.
const (
	Plain = "plain"
	Site  = "site"
	End   = "end"
)

// Runnable is a block that a test runs.
type Runnable struct {
	Page   string
	Line   int
	Stage  string
	On     string // the host
	Answer string // what is typed when it asks, a line for each question
	Exit   int
	Within time.Duration // in which it is tried again; 0: once
	Script string
	Shows  []string // lines of what it prints
}

// Name is that of a test.
func (r Runnable) Name() string {
	return fmt.Sprintf("%s line %d", strings.TrimPrefix(r.Page, "docs/"), r.Line)
}

const showsInfo = "text shows"

// Runnables returns the page's runnable blocks.
func (p Page) Runnables() ([]Runnable, error) {
	blocks, _ := p.blocks()
	lines := strings.Split(p.text, "\n")
	var all []Runnable
	var errs []error
	next := -1 // the line where what the block before shows may begin
	for _, b := range blocks {
		after := nextText(lines, b.line+len(b.lines)) + 2
		switch {
		case b.info == showsInfo && b.line == next:
			all[len(all)-1].Shows = b.lines
			next = -1
		case b.info == showsInfo:
			errs = append(errs, fmt.Errorf("%s:%d: it shows what no block before it prints", p.Name, b.line))
		case strings.Contains(b.info, "runnable"):
			r, err := runnable(b)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %w", p.Name, b.line, err))
			}
			r.Page = p.Name
			all, next = append(all, r), after
		}
	}
	return all, errors.Join(errs...)
}

// nextText is the index of the first line with text, from the one after a block's end on.
func nextText(lines []string, i int) int {
	for i < len(lines) && strings.TrimSpace(lines[i]) == "" {
		i++
	}
	return i
}

func runnable(b block) (Runnable, error) {
	r := Runnable{Line: b.line, On: "m1", Script: strings.Join(b.lines, "\n") + "\n"}
	words := strings.Fields(b.info)
	if words[0] != "sh" {
		return r, fmt.Errorf("a runnable block is one of sh, not of %s", words[0])
	}
	for _, w := range words[1:] {
		var err error
		switch name, value, _ := strings.Cut(w, "="); name {
		case "runnable":
			r.Stage = value
		case "on":
			r.On = value
		case "answer":
			r.Answer = strings.ReplaceAll(value, ",", "\n")
		case "exit":
			r.Exit, err = strconv.Atoi(value)
		case "within":
			r.Within, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("%s is nothing that a runnable block says", name)
		}
		if err != nil {
			return r, err
		}
	}
	if !slices.Contains([]string{Plain, Site, End}, r.Stage) {
		return r, fmt.Errorf("there is no stage %q", r.Stage)
	}
	return r, nil
}

// Lacks returns the first of the words that shall be there, in this order, and are not; empty when all are.
func Lacks(output string, shows []string) string {
	for _, line := range shows {
		for _, part := range strings.Split(line, "…") {
			for _, words := range gap.Split(part, -1) {
				if words = strings.TrimSpace(words); words == "" {
					continue
				}
				i := strings.Index(output, words)
				if i < 0 {
					return words
				}
				output = output[i+len(words):]
			}
		}
	}
	return ""
}
