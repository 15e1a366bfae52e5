package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/scale"
)

// treeSeen is a tree and how it came to the other nodes.
type treeSeen struct {
	scale.Tree
	Took, Author, Others float64 // s; CPU of saltclusterd
	Share                float64 // of the machine, that others left meanwhile
	Pace                 float64 // s, that the meter's piece of work took
}

// rollOut puts a tree below the first node's roots and waits until both others have it.
func (m *modelLab) rollOut(ctx context.Context, round int, t scale.Tree) (seen treeSeen, err error) {
	m.say("model: a tree of %d files, %d MiB, load %s", t.Files, t.Bytes>>20, loadAverage())
	author, name := m.c.Nodes[0], fmt.Sprint("model", round)
	next := filepath.Join(author.Dir(), name)
	tree := rootsTree{files: t.Files, size: int(t.Bytes) / t.Files}
	if err := errors.Join(os.Mkdir(next, 0o755), tree.make(next, 100+round)); err != nil {
		return seen, err
	}
	if err := settle(); err != nil {
		return seen, err
	}
	meter, err := m.meter()
	if err != nil {
		return seen, err
	}
	defer meter.end()
	calm := time.Now()
	if err := rest(ctx, modelRest); err != nil {
		return seen, err
	}
	began := time.Now()
	if err := os.Rename(next, filepath.Join(author.Master.FileRoot(), name)); err != nil {
		return seen, err
	}
	within, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	for _, n := range m.c.Nodes[1:] {
		for i := 0; i < t.Files; {
			if _, err := os.Stat(filepath.Join(n.Master.FileRoot(), name, tree.path(i))); err == nil {
				i++
				continue
			}
			if err := rest(within, 2*time.Millisecond); err != nil {
				return seen, fmt.Errorf("%s does not get the tree: %w", n.Name, err)
			}
		}
	}
	there := time.Now()
	seen = treeSeen{Tree: t, Took: there.Sub(began).Seconds(), Share: meter.share(began, there), Pace: meter.pace(began, there).Seconds()}
	if err := rest(ctx, modelRest); err != nil {
		return seen, err
	}
	used := meter.beyondIdle(calm, began, began, time.Now())
	seen.Author, seen.Others = used[modelGroups[0]], used[modelGroups[1]]
	return seen, nil
}
