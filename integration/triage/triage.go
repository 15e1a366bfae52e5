package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// decision is why findings of a class are none in some places.
type decision struct {
	class string
	where *regexp.Regexp
	why   string
	found int
}

// parse reads decisions.
func parse(text string) (all []*decision, err error) {
	for n, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			if len(all) == 0 {
				return nil, fmt.Errorf("line %d continues no decision", n+1)
			}
			last := all[len(all)-1]
			last.why = strings.TrimSpace(last.why + " " + strings.TrimSpace(line))
		default:
			f := strings.Fields(line)
			if len(f) < 2 {
				return nil, fmt.Errorf("line %d: a class and a pattern are needed", n+1)
			}
			where, err := regexp.Compile(f[1])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			all = append(all, &decision{class: f[0], where: where, why: strings.Join(f[2:], " ")})
		}
	}
	for _, d := range all {
		if d.why == "" {
			return nil, fmt.Errorf("%s %s: no reason is given", d.class, d.where)
		}
	}
	return all, nil
}

// finding is one of gosec's.
type finding struct {
	Class   string `json:"rule_id"`
	Details string `json:"details"`
	File    string `json:"file"`
	Code    string `json:"code"`
	Line    string `json:"line"`
}

// place is what patterns are compared with.
func (f finding) place(root string) string {
	file := f.File
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsAbs(file) {
		file = rel
	}
	code := ""
	first, _, _ := strings.Cut(f.Line, "-")
	for line := range strings.Lines(f.Code) { // "12: text", with those around it
		if rest, ok := strings.CutPrefix(line, first+": "); ok {
			code = strings.TrimSpace(rest)
		}
	}
	return filepath.ToSlash(file) + ": " + code
}

// unread is what gosec could not compile.
type unread struct {
	Error string `json:"error"`
}

var errOpen = errors.New("findings and decisions do not agree")

// triage reports what is open.
func triage(out io.Writer, in io.Reader, decisions, root string) error {
	all, err := parse(decisions)
	if err != nil {
		return err
	}
	var report struct {
		Issues []finding
		Stats  struct{ Files int }
		Errors map[string][]unread `json:"Golang errors"`
	}
	if err := json.NewDecoder(in).Decode(&report); err != nil {
		return fmt.Errorf("read the findings: %w", err)
	}
	for _, errs := range report.Errors {
		for _, e := range errs {
			return fmt.Errorf("gosec has not read everything: %s", e.Error)
		}
	}
	if report.Stats.Files == 0 {
		return errors.New("gosec has read nothing")
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	open := 0
	for _, f := range report.Issues {
		place := f.place(root)
		i := slices.IndexFunc(all, func(d *decision) bool { return d.class == f.Class && d.where.MatchString(place) })
		if i < 0 {
			open++
			fmt.Fprintf(out, "%s %s (line %s): %s\n", f.Class, place, f.Line, f.Details)
			continue
		}
		all[i].found++
	}
	for _, d := range all {
		if d.found == 0 {
			open++
			fmt.Fprintf(out, "%s %s: nothing is found there any more\n", d.class, d.where)
		}
	}
	fmt.Fprintf(out, "gosec: %d files, %d findings, %d open\n", report.Stats.Files, len(report.Issues), open)
	if open > 0 {
		return errOpen
	}
	return nil
}
