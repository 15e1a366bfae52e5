package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

// loseState takes away everything a node's saltclusterd knew.
func loseState(_ context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error { return errors.Join(n.Daemon.Kill(), emptyDir(n.Daemon.StateDir)) })
}

// damageLog makes the second half of the raft log unreadable, and wants the node to say so and to vote no more.
func damageLog(ctx context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error {
		if err := n.Daemon.Kill(); err != nil {
			return err
		}
		if err := damage(filepath.Join(n.Daemon.StateDir, "*", "raft.db")); err != nil {
			return err
		}
		if err := n.Daemon.Start(ctx); err != nil {
			return err
		}
		err := lab.Eventually(ctx, damageNoticed, n.Name+" to notice its damaged log", func(context.Context) error {
			if !n.Daemon.Logged("log is damaged") {
				return errors.New("nothing of it in its log")
			}
			return nil
		})
		return errors.Join(err, n.Daemon.Kill())
	})
}

// damageNoticed is how long a start may take until the log has been read.
const damageNoticed = 20 * time.Second

func damage(pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		return fmt.Errorf("damage %s: %d files: %w", pattern, len(files), err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const heads = 8 << 10 // the last pages in use stand anywhere behind them
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, fi.Size()-heads), heads)
	return err
}

func emptyDir(dir string) error {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// joinAnew is what an operator does with a node whose state is lost: remove it, and let it join with an empty
// directory.
func joinAnew(ctx context.Context, w *world, s Step) error {
	return w.each(s, func(n *lab.Node) error {
		other := w.other(n)
		if err := emptyDir(n.Daemon.StateDir); err != nil {
			return err
		}
		res, err := other.Daemon.Ctl(ctx, "remove", "--yes", n.Name)
		if err := errors.Join(err, res.Err()); err != nil {
			return err
		}
		if err := n.Daemon.Start(ctx); err != nil {
			return err
		}
		// The socket of the daemon that was killed is still there: only an answer tells that the new one listens.
		return lab.Eventually(ctx, readyWithin, n.Name+" to join", func(ctx context.Context) error {
			return n.Daemon.Join(ctx, other.Daemon)
		})
	})
}
