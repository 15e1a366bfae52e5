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
	took, author, others float64 // s; CPU of saltclusterd
	share                float64 // of the machine, that others left meanwhile
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
	if err := rest(ctx, modelRest); err != nil {
		return seen, err
	}
	meter, err := m.meter()
	if err != nil {
		return seen, err
	}
	defer meter.end()
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
	seen = treeSeen{Tree: t, took: there.Sub(began).Seconds(), share: meter.share(began, there)}
	if err := rest(ctx, modelRest); err != nil {
		return seen, err
	}
	used := meter.used(began, time.Now())
	seen.author, seen.others = used[modelGroups[0]].Seconds(), used[modelGroups[1]].Seconds()
	return seen, nil
}

// calibrateRoots finds what a file and a MiB cost here from two small trees, the first of many files and the second of few large ones.
func calibrateRoots(site scale.Site, c *scale.Costs, seen []treeSeen) {
	site.Slower = scale.Factors{}
	scaleBy := func(f float64, costs ...*time.Duration) {
		for _, d := range costs {
			*d = time.Duration(float64(*d) * f)
		}
	}
	for range 5 { // each of the two trees costs a little of the other kind
		r := scale.NewWorld(site, c).Rollout(seen[0].Tree)
		scaleBy(seen[0].author/r.CPU["author"].Seconds(), &c.ScanFile, &c.ServeFile)
		scaleBy(seen[0].others/r.CPU["others"].Seconds(), &c.StageFile, &c.SwitchFile)
		r = scale.NewWorld(site, c).Rollout(seen[1].Tree)
		scaleBy(seen[1].author/r.CPU["author"].Seconds(), &c.ScanMiB, &c.ServeMiB)
		scaleBy(seen[1].others/r.CPU["others"].Seconds(), &c.StageMiB)
	}
}
