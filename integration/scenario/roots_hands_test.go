//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// handsSlots are the directories of the roots below a node, by option and environment.
var handsSlots = []string{"srv/salt", "srv/more", "srv/dev", "srv/pillar", "srv/pillardev"}

// handsRoots gives each master two environments, and two directories of one of them.
func handsRoots(n *lab.Node) lab.Settings {
	at := func(dirs ...string) (all []string) {
		for _, d := range dirs {
			all = append(all, filepath.Join(n.Dir(), d))
		}
		return all
	}
	return lab.Settings{
		"file_roots":   map[string][]string{"base": at("srv/salt", "srv/more"), "dev": at("srv/dev")},
		"pillar_roots": map[string][]string{"base": at("srv/pillar"), "dev": at("srv/pillardev")},
	}
}

// Trees are edited on every node at once, in every way, while their clocks are two minutes apart, saltclusterd is
// killed here and there, lines break, and minions give grains, mines and returns. Afterwards nothing that somebody has
// made is missing, nothing that was removed is back, and every master gives the same answer to the same question.
// HANDS=seed does the same again, as far as time lets it.
func TestHands(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-roots")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HANDS"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		labtest.Must(t, err)
	}
	t.Logf("HANDS=%d", seed)
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)
	settings := maps.Clone(metricsForAll)
	settings["cluster_roots_max_delete"] = 100
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MasterSettings: clusterMasters, DaemonSettings: settings,
		Seams: lab.SeamClock,
	})
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		for _, dir := range handsSlots {
			labtest.Must(t, os.MkdirAll(filepath.Join(n.Dir(), dir), 0o755))
		}
		labtest.Must(t, n.Master.Configure(clusterMasters, handsRoots(n)))
	}
	labtest.Must(t, c.Up(t.Context()))
	labtest.Must(t, c.Nodes[1].Daemon.SetSeams(lab.Seams{Clock: time.Minute}))
	labtest.Must(t, c.Nodes[2].Daemon.SetSeams(lab.Seams{Clock: -time.Minute}))
	handsSettled(t, c)

	hands := make([]*hand, len(c.Nodes))
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		h := &hand{node: n, rand: rand.New(rand.NewPCG(seed, uint64(i))), own: map[string]string{}}
		hands[i] = h
		wg.Go(func() { h.work(ctx) })
	}
	var jobs []string
	wg.Go(func() { jobs = handsLoad(ctx, t, c) })
	handsTrouble(ctx, t, c, rand.New(rand.NewPCG(seed, 99)))
	wg.Wait()
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Serving(t.Context(), 2*time.Minute))
	}
	labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	handsSettled(t, c)
	for _, h := range hands {
		h.check(t, c)
	}
	labtest.Must(t, errors.Join(c.Nodes[1].Daemon.SetSeams(lab.Seams{}), c.Nodes[2].Daemon.SetSeams(lab.Seams{})))
	sameEverywhere(t, 2*time.Minute, c.Nodes, targetsOf(c), "lab_hands", true)
	if len(jobs) > 0 {
		sameAnswers(t, 2*time.Minute, c.Nodes, jobs...)
	}
	t.Logf("%d jobs", len(jobs))
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "no difference", func(ctx context.Context) error {
		v, code, err := verify(ctx, c.Nodes[1])
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
		}
		return err
	}))
}

// handsSettled waits until the trees of all directories are equal everywhere, and nothing is under way.
func handsSettled(t *testing.T, c *lab.Cluster) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, "the roots to be current", func(ctx context.Context) error {
		st, err := rootsOf(ctx, c.Nodes[0])
		if err != nil {
			return err
		}
		for _, n := range st.Nodes {
			if n.Error != "" || !n.Current || n.Edited || st.Head == nil || n.Revision != st.Head.Number {
				return fmt.Errorf("%+v of %+v", n, st.Head)
			}
		}
		for _, n := range c.Nodes[1:] {
			for _, dir := range handsSlots {
				if d := differ(t, filepath.Join(c.Nodes[0].Dir(), dir), filepath.Join(n.Dir(), dir)); d != "" {
					return fmt.Errorf("%s of %s and %s: %s", dir, c.Nodes[0].Name, n.Name, d)
				}
			}
		}
		return nil
	}))
}

// handsTrouble kills and cuts off, until ctx ends; then everything runs.
func handsTrouble(ctx context.Context, t *testing.T, c *lab.Cluster, r *rand.Rand) {
	t.Helper()
	kills, cuts := 0, 0
	for wait(ctx, time.Duration(1000+r.IntN(3000))*time.Millisecond) {
		n := c.Nodes[r.IntN(len(c.Nodes))]
		if r.IntN(4) == 0 {
			cuts++
			labtest.Must(t, c.Lab.Isolate(t.Context(), n.Host))
			wait(ctx, time.Duration(500+r.IntN(4000))*time.Millisecond)
			labtest.Must(t, c.Lab.Heal(t.Context()))
			continue
		}
		victims := []*lab.Node{n}
		if r.IntN(4) == 0 {
			victims = append(victims, c.Nodes[(slices.Index(c.Nodes, n)+1)%len(c.Nodes)])
		}
		for _, v := range victims {
			kills++
			labtest.Must(t, v.Daemon.Kill())
		}
		wait(ctx, time.Duration(r.IntN(3000))*time.Millisecond)
		for _, v := range victims {
			labtest.Must(t, v.Daemon.Start(t.Context()))
		}
	}
	t.Logf("%d kills, %d cuts", kills, cuts)
}

// wait waits, and reports whether ctx goes on.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// handsLoad has minions give what masters keep of them, and returns the jobs; what fails meanwhile, fails.
func handsLoad(ctx context.Context, t *testing.T, c *lab.Cluster) (jobs []string) {
	for i := 0; wait(ctx, 500*time.Millisecond); i++ {
		n, m := c.Nodes[i%len(c.Nodes)], c.Minions[i%len(c.Minions)]
		value := fmt.Sprint("hands", i)
		run, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		switch i % 4 {
		case 0:
			_, _ = m.Call(run, "grains.setval", "lab_data", value)
			_, _ = m.Call(run, "pillar.items")
		case 1:
			_, _ = m.Call(run, "mine.send", "lab_hands", "mine_function=test.echo", value)
		default:
			if res, err := n.Master.Run(run, "salt", "--async", "*", "test.arg", value); err == nil {
				if jid := jidPrinted.FindString(res.Stdout); jid != "" {
					jobs = append(jobs, jid)
				}
			}
		}
		cancel()
	}
	return jobs
}

// hand edits the roots of a node: paths of its own, of which it knows what must come of them, and some that all hands
// share.
type hand struct {
	node  *lab.Node
	rand  *rand.Rand
	own   map[string]string // what is at a path of its own; "" nothing
	count int
	err   error
}

func (h *hand) work(ctx context.Context) {
	for wait(ctx, time.Duration(h.rand.IntN(60))*time.Millisecond) {
		h.count++
		dir := filepath.Join(h.node.Dir(), handsSlots[h.rand.IntN(len(handsSlots))])
		if h.rand.IntN(3) == 0 {
			_ = h.edit(filepath.Join(dir, "shared", fmt.Sprint("f", h.rand.IntN(5))))
			continue
		}
		sub := fmt.Sprintf("own-%s/d%d", h.node.Name, h.rand.IntN(4))
		path := filepath.Join(dir, sub, fmt.Sprint("f\xff", h.rand.IntN(6)))
		switch h.rand.IntN(12) {
		case 0:
			h.err = errors.Join(h.err, os.RemoveAll(filepath.Join(dir, sub)))
			h.forget(filepath.Join(dir, sub))
		case 1:
			to := filepath.Join(dir, fmt.Sprintf("own-%s/d%d", h.node.Name, 10+h.count))
			if os.Rename(filepath.Join(dir, sub), to) == nil {
				h.moved(filepath.Join(dir, sub), to)
			}
		default:
			h.err = errors.Join(h.err, h.edit(path))
			h.own[path] = seen(path)
		}
	}
}

// forget notes that what is below a directory is gone, moved that it is elsewhere.
func (h *hand) forget(dir string) {
	for path := range h.own {
		if strings.HasPrefix(path, dir+"/") {
			h.own[path] = ""
		}
	}
}

func (h *hand) moved(dir, to string) {
	for path, was := range maps.Clone(h.own) {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			h.own[path], h.own[to+"/"+rest] = "", was
		}
	}
}

// edit does something to a path: what editors, scripts and people do.
func (h *hand) edit(path string) error {
	text := fmt.Appendf(nil, "%s %d\n", h.node.Name, h.count)
	if h.rand.IntN(8) == 0 {
		text = append(text, make([]byte, 3<<20)...)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch h.rand.IntN(6) {
	case 0:
		return os.RemoveAll(path)
	case 1:
		return errors.Join(os.RemoveAll(path), os.Symlink(string(text[:5]), path))
	case 2: // in place
		if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
			return nil
		}
		return os.WriteFile(path, text, 0o644)
	case 3:
		if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
			return nil
		}
		return os.Chmod(path, []os.FileMode{0o600, 0o644, 0o755}[h.rand.IntN(3)])
	}
	temp := filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
	return errors.Join(os.WriteFile(temp, text, 0o640), os.Rename(temp, path))
}

// seen is what is at a path, as treeOf says it.
func seen(path string) string {
	st, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if st.Mode()&os.ModeSymlink != 0 {
		to, _ := os.Readlink(path)
		return "symlink " + to
	}
	raw, _ := os.ReadFile(path)
	return st.Mode().String() + " " + string(raw)
}

// check looks whether a hand's own paths are everywhere what it has made of them.
func (h *hand) check(t *testing.T, c *lab.Cluster) {
	t.Helper()
	if h.err != nil {
		t.Errorf("%s: %v", h.node.Name, h.err)
	}
	wrong := 0
	for _, n := range c.Nodes {
		for path, want := range h.own {
			got := seen(filepath.Join(n.Dir(), strings.TrimPrefix(path, h.node.Dir())))
			if got == want {
				continue
			}
			if wrong++; wrong < 10 {
				t.Errorf("%s on %s is %.60q, not %.60q", path, n.Name, got, want)
			}
		}
	}
	t.Logf("%s: %d edits, %d paths of its own", h.node.Name, h.count, len(h.own))
	if wrong > 0 {
		t.Logf("%s has put aside:\n%s", h.node.Name, ctl(t, h.node.Daemon, "roots", "conflicts").Stdout)
	}
}
