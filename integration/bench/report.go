package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"saltclusterd/integration/lab"
)

// Between these lines of docs/performance.md stand the tables of runs with -write, of each the newest.
const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

// report prints tables as they become ready and keeps them.
type report struct {
	run  string // when and where
	text bytes.Buffer
}

func newReport(o options) *report {
	kind := "full run"
	if o.quick {
		kind = "quick run, not for comparison"
	}
	r := &report{run: fmt.Sprintf("%s, %s, %d CPUs (%s), Linux %s, %s, load average %s before; figures are "+
		"minimum/median/maximum over the rounds.",
		time.Now().UTC().Format("2006-01-02"), kind, runtime.NumCPU(), cpuModel(), kernel(), runtime.Version(), loadAverage())}
	fmt.Println(r.run)
	return r
}

// Write takes markdown that somebody else made.
func (r *report) Write(p []byte) (int, error) {
	r.text.Write(p)
	return os.Stdout.Write(p)
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

// table prints one.
func (r *report) table(title, intro string, head []string, rows [][]string) {
	r.printf("\n## %s\n\n%s\n\n| %s |\n|%s\n", title, intro, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		r.printf("| %s |\n", strings.Join(row, " | "))
	}
}

// write puts the tables between the marks.
func (r *report) write() error {
	path := filepath.Join(lab.ModuleRoot(), "docs/performance.md")
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	before, rest, ok := strings.Cut(string(old), beginMark)
	tables, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return errors.New("write tables: docs/performance.md has no " + beginMark + " … " + endMark)
	}
	text := before + beginMark + merge(tables, r.text.String(), r.run) + endMark + after
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	return nil
}

// merge puts new tables in the place of those with the same title, or at the end, each with the run that it comes from.
func merge(old, news, run string) string {
	const title = "\n## "
	tables := strings.Split(old, title)[1:]
	for _, t := range strings.Split(news, title)[1:] {
		t = strings.TrimRight(t, "\n") + "\n\n" + run + "\n"
		name, _, _ := strings.Cut(t, "\n")
		at := slices.IndexFunc(tables, func(old string) bool { return strings.HasPrefix(old, name+"\n") })
		if at < 0 {
			tables = append(tables, t)
		} else {
			tables[at] = t
		}
	}
	var out strings.Builder
	for _, t := range tables {
		out.WriteString(title + strings.TrimRight(t, "\n") + "\n")
	}
	return out.String()
}

// loadAverage of the last minute: a busy machine makes latencies and rates meaningless.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(raw), " ")
	return first
}

func cpuModel() string {
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	out, err := exec.Command("uname", "-r").Output()
	if err != nil {
		return "of unknown version"
	}
	return strings.TrimSpace(string(out))
}
