package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// header says when and where a run was made. A busy machine makes latencies and rates meaningless.
func header(quick bool) string {
	kind := "full run"
	if quick {
		kind = "quick run, not for comparison"
	}
	var processor string
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			processor = strings.TrimSpace(value)
		}
	}
	busy, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return fmt.Sprintf("%s, %s, %d CPUs (%s), Linux %s, %s, load average %s before.",
		time.Now().UTC().Format("2006-01-02"), kind, runtime.NumCPU(), processor,
		strings.TrimSpace(read("/proc/sys/kernel/osrelease")), runtime.Version(), busy)
}

// read returns a file of /proc, or nothing.
func read(path string) string {
	raw, _ := os.ReadFile(path)
	return string(raw)
}

// table prints one as markdown, with the run that it comes from.
func (b *bench) table(title, intro string, head []string, rows [][]string) {
	rule := strings.Repeat("---|", len(head))
	fmt.Printf("\n## %s\n\n%s\n\n| %s |\n|%s\n", title, intro, strings.Join(head, " | "), rule)
	for _, row := range rows {
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
	fmt.Printf("\n%s\n", b.run)
}
