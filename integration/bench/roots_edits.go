package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
)

// checks has a node find out that nothing is to be done.
func (r *rootsBench) checks(ctx context.Context, n *lab.Node) error {
	took, err := r.ctl(ctx, n, "sync_roots")
	r.cost.check.add(millis(took))
	return err
}

func (r *rootsBench) theirChecks(ctx context.Context, from, to *lab.Node) error {
	took, err := r.timed(ctx, to, r.rsync, "-a", "rsync://"+from.Addr+":"+rsyncPort+"/plain/", filepath.Join(to.Dir(), copyDir)+"/")
	r.cost.theirCheck.add(millis(took))
	return err
}

// edits changes one file twice: the first is found by itself, the second is pushed.
func (r *rootsBench) edits(ctx context.Context, t rootsTree) error {
	author, others := r.c.Nodes[0], r.c.Nodes[1:]
	path, text := t.path(rand.IntN(t.files)), newText()
	began := time.Now()
	if err := replaceFile(filepath.Join(author.Master.FileRoot(), path), text); err != nil {
		return err
	}
	for _, n := range others {
		if err := holdsText(ctx, filepath.Join(n.Master.FileRoot(), path), text); err != nil {
			return err
		}
	}
	r.cost.auto.add(millis(time.Since(began)))
	if _, err := r.ctl(ctx, author, "sync_roots"); err != nil { // what comes after the edit does not count for the next
		return err
	}
	path, text = t.path(rand.IntN(t.files)), newText()
	if err := replaceFile(filepath.Join(author.Master.FileRoot(), path), text); err != nil {
		return err
	}
	took, err := r.ctl(ctx, author, "sync_roots")
	r.cost.push.add(millis(took))
	for _, n := range others {
		if got, _ := os.ReadFile(filepath.Join(n.Master.FileRoot(), path)); err == nil && !bytes.Equal(got, text) {
			return fmt.Errorf("sync_roots has ended, and %s does not have the edit", n.Name)
		}
	}
	return err
}

// theirEdits changes one file and has rsync bring it to both other nodes: first one after the other, then another at once.
func (r *rootsBench) theirEdits(ctx context.Context, t rootsTree) error {
	author, others := r.c.Nodes[0], r.c.Nodes[1:]
	plain := filepath.Join(author.Dir(), plainDir)
	push := func(n *lab.Node) error {
		_, err := r.timed(ctx, author, r.rsync, "-a", plain+"/", "rsync://"+n.Addr+":"+rsyncPort+"/copy/")
		return err
	}
	if err := replaceFile(filepath.Join(plain, t.path(rand.IntN(t.files))), newText()); err != nil {
		return err
	}
	began := time.Now()
	for _, n := range others {
		if err := push(n); err != nil {
			return err
		}
	}
	r.cost.theirPush.add(millis(time.Since(began)))
	if err := replaceFile(filepath.Join(plain, t.path(rand.IntN(t.files))), newText()); err != nil {
		return err
	}
	began = time.Now()
	var g errgroup.Group
	for _, n := range others {
		g.Go(func() error { return push(n) })
	}
	err := g.Wait()
	r.cost.theirPushOnce.add(millis(time.Since(began)))
	return err
}

func newText() []byte { return fmt.Appendf(nil, "edited at %d\n", time.Now().UnixNano()) }

// replaceFile does what editors do.
func replaceFile(path string, text []byte) error {
	temp := filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

const editWithin = time.Minute

// holdsText waits until a file has some content.
func holdsText(ctx context.Context, path string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	for {
		if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, text) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not get the edit: %w", path, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}
