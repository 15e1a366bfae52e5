package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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
	b.say("ports against libzmq")
	cmd := exec.CommandContext(ctx, path, b.edgeFlags(ctx, path)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, b.out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("edgebench: %w", err)
	}
	return nil
}

// edgeFlags are those of ours that edgebench has.
func (b *bench) edgeFlags(ctx context.Context, path string) []string {
	help, _ := exec.CommandContext(ctx, path, "-h").CombinedOutput()
	wanted := slices.DeleteFunc(slices.Clone(b.what), func(w string) bool { return !slices.Contains(sections[:3], w) })
	all := append([]string{"-what", strings.Join(wanted, ",")}, b.sizes.edge...)
	var known []string
	for i := 0; i+1 < len(all); i += 2 {
		if strings.Contains(string(help), "  "+all[i]+" ") {
			known = append(known, all[i:i+2]...)
		}
	}
	return known
}
