package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

const (
	rsyncPort = "8730"
	plainDir  = "plain" // the tree that rsync reads
	copyDir   = "copy"  // and where it brings it
)

func findRsync() (string, error) {
	path, err := exec.LookPath("rsync")
	if err != nil {
		return "", fmt.Errorf("rsync is not installed, run 'make setup': %w", err)
	}
	return path, nil
}

// startRsync starts an rsync daemon on each node.
func (r *rootsBench) startRsync(ctx context.Context) error {
	for _, n := range r.c.Nodes {
		plain, to := filepath.Join(n.Dir(), plainDir), filepath.Join(n.Dir(), copyDir)
		if err := errors.Join(emptyDir(plain), emptyDir(to)); err != nil {
			return err
		}
		config := filepath.Join(n.Dir(), "rsyncd.conf")
		text := fmt.Sprintf("use chroot = no\nuid = %d\ngid = %d\n[plain]\npath = %s\n[copy]\npath = %s\nread only = no\n",
			os.Getuid(), os.Getgid(), plain, to)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return err
		}
		p := n.NewProcess(lab.Spec{
			Name: "rsyncd", Argv: []string{r.rsync, "--daemon", "--no-detach", "--config=" + config, "--address=" + n.Addr, "--port=" + rsyncPort},
			Ready: func(ctx context.Context) error { return n.Accepts(ctx, n.Addr+":"+rsyncPort) },
		})
		if err := p.Start(ctx); err != nil {
			return err
		}
		if err := p.WaitReady(ctx, startWithin); err != nil {
			return err
		}
	}
	return nil
}

// timed runs a command in a node's network, without the lab's supervisor, which would count for both sides.
func (r *rootsBench) timed(ctx context.Context, n *lab.Node, argv ...string) (took time.Duration, err error) {
	err = n.Do(func() error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), n.Daemon.Env()...)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took = time.Since(began)
		if err != nil {
			return fmt.Errorf("%q on %s: %w: %s", argv, n.Name, err, out)
		}
		return nil
	})
	return took, err
}
