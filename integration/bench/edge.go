package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"saltclusterd/integration/lab"
)

// edge runs edgebench, which measures both edges against libzmq and prints tables of its own.
func (b *bench) edge(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := lab.ModuleRoot()
	path := filepath.Join(dir, "edgebench")
	build := exec.CommandContext(ctx, filepath.Join(root, "integration/setup/go"), "build", "-o", path, "./integration/bench/edgebench")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build edgebench: %w\n%s", err, out)
	}
	for _, r := range b.sizes.edge {
		r.what = slices.DeleteFunc(slices.Clone(r.what), func(w string) bool { return !b.wants(w) })
		if len(r.what) == 0 {
			continue
		}
		b.say("%s against libzmq", strings.Join(r.what, ", "))
		cmd := exec.CommandContext(ctx, path, r.known(ctx, path)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, b.out, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // a killed one would leave its children behind
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("edgebench: %w", err)
		}
	}
	return nil
}

// known are those of the run's flags that edgebench has.
func (r edgeRun) known(ctx context.Context, path string) []string {
	help, _ := exec.CommandContext(ctx, path, "-h").CombinedOutput()
	all := append([]string{"-what", strings.Join(r.what, ",")}, r.flags...)
	var known []string
	for i := 0; i+1 < len(all); i += 2 {
		if strings.Contains(string(help), "  "+all[i]+" ") {
			known = append(known, all[i:i+2]...)
		}
	}
	return known
}
