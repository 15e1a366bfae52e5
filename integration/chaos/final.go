package chaos

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/adminapi"
)

const (
	calmFor       = 10 * time.Second // of publications that every stock minion has to run
	returnsWithin = 45 * time.Second // three tries of a return
	cacheWithin   = 5 * time.Second  // what was acknowledged is on its way into the job cache no longer than that
	hearFor       = 5 * time.Second  // a deleted key listens
)

// calm watches the stock minions for a while with nothing broken.
func (w *world) calm(ctx context.Context) error {
	if err := w.recovered(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecovered, err)
	}
	if err := w.minionsBack(ctx); err != nil {
		return err
	}
	began := time.Now()
	if !backoff.Sleep(ctx, calmFor) {
		return context.Cause(ctx)
	}
	for _, m := range w.cluster.Minions {
		w.rec.Presence(history.Presence{Minion: m.ID, From: began, To: time.Now()})
	}
	return nil
}

// minionsBack waits until the stock minions have found their way back: they run what is published from now on.
func (w *world) minionsBack(ctx context.Context) error {
	from := w.last()
	err := lab.Eventually(ctx, w.cfg.Mended, "stock minions to run jobs again", func(context.Context) error {
		for _, m := range w.cluster.Minions {
			runs, err := readRuns(m)
			if err != nil {
				return err
			}
			if len(runs) == 0 || runs[len(runs)-1].Number <= from {
				return fmt.Errorf("%s does not", m.ID)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecovered, err)
	}
	return nil
}

// settle waits until nothing is on its way any more.
func (w *world) settle(ctx context.Context) error {
	if err := w.awaitRuns(ctx); err != nil {
		return err
	}
	err := lab.Eventually(ctx, returnsWithin, "the last returns", func(context.Context) error {
		h := w.rec.History()
		if runs, returns := len(h.Runs), len(h.Returns); runs != returns {
			return fmt.Errorf("%d runs, %d returns", runs, returns)
		}
		for _, c := range w.clients {
			if !c.idle() {
				return fmt.Errorf("%s publishes", c.node.Name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !backoff.Sleep(ctx, cacheWithin) {
		return context.Cause(ctx)
	}
	return nil
}

// awaitRuns waits until the stock minions have run what was published at the end: on a busy machine they start jobs
// many seconds after they got them. The judge says what is missing in the end.
func (w *world) awaitRuns(ctx context.Context) error {
	var last []int
	for _, p := range w.rec.History().Publications {
		if p.Outcome == history.OK && time.Since(p.Start) < returnsWithin+calmFor {
			last = append(last, p.Number)
		}
	}
	_ = lab.Eventually(ctx, returnsWithin, "the last runs", func(context.Context) error {
		for _, m := range w.cluster.Minions {
			runs, err := readRuns(m)
			if err != nil {
				return err
			}
			for _, n := range last {
				if !slices.ContainsFunc(runs, func(r history.Run) bool { return r.Number == n }) {
					return fmt.Errorf("%s has not run number %d", m.ID, n)
				}
			}
		}
		return nil
	})
	return context.Cause(ctx)
}

// judgeable adds to the history what is to be seen at the end.
func (w *world) judgeable(ctx context.Context, o *operator) error {
	for _, m := range w.cluster.Minions {
		runs, err := readRuns(m)
		if err != nil {
			return err
		}
		for _, r := range runs {
			w.rec.Run(r)
		}
	}
	jids := map[string]bool{}
	h := w.rec.History()
	for _, p := range h.Publications {
		jids[p.Jid] = true
	}
	for _, r := range h.Returns {
		jids[r.Jid] = true
	}
	delete(jids, "")
	var list []string
	for jid := range jids {
		list = append(list, jid)
	}
	for _, c := range w.clients {
		if err := c.cached(ctx, w.scripts, list); err != nil {
			return err
		}
	}
	for _, n := range w.cluster.Nodes {
		v, err := w.view(ctx, n)
		if err != nil {
			return fmt.Errorf("view of %s: %w", n.Name, err)
		}
		w.rec.View(v)
	}
	return w.probe(ctx, o)
}

// readRuns reads what a stock minion has written down.
func readRuns(m *lab.Minion) ([]history.Run, error) {
	raw, err := os.ReadFile(filepath.Join(m.StateDir(), "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var runs []history.Run
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		r := history.Run{Minion: m.ID}
		var at float64
		if n, _ := fmt.Sscan(s.Text(), &r.Jid, &r.Number, &at); n == 3 {
			r.At = unix(at)
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// view is what a node says.
func (w *world) view(ctx context.Context, n *lab.Node) (v history.View, err error) {
	v.Node = n.Name
	var status adminapi.Status
	if err := n.Daemon.CtlJSON(ctx, &status, "status"); err != nil {
		return v, err
	}
	if status.Cluster != nil {
		v.UUID, v.Epoch, v.Leader = status.Cluster.UUID, status.Cluster.Epoch, status.Cluster.Leader
	}
	for _, m := range status.Members {
		v.Members = append(v.Members, fmt.Sprintf("%s %s %s", m.ID, m.Role, m.State))
	}
	pub, err := os.ReadFile(filepath.Join(n.Master.PKIDir(), "master.pub"))
	if err != nil {
		return v, err
	}
	v.Identity = fingerprint(bytes.TrimSpace(pub))
	s, err := w.players[0].SignIn(ctx, n.Addr)
	if err != nil {
		return v, err
	}
	v.AES = fingerprint([]byte(s.AES.Text()))
	v.Keys, err = n.Master.Keys(ctx)
	for state := range v.Keys {
		slices.Sort(v.Keys[state])
	}
	return v, err
}

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// probe tries the deleted keys everywhere, with what they knew when they were accepted.
func (w *world) probe(ctx context.Context, o *operator) error {
	for _, m := range o.deleted {
		for _, n := range w.cluster.Nodes {
			add := func(what string, worked bool, err error) {
				w.rec.Probe(history.Probe{ID: m.ID, Node: n.Name, What: what, At: time.Now(), Worked: worked,
					Detail: fmt.Sprint(err)})
			}
			if m.Secrets() == nil {
				break // it was never let in
			}
			_, err := m.Request(ctx, n.Addr, "_file_envs", nil)
			add("request", err == nil, err)
		}
	}
	if err := w.probeEars(ctx, o); err != nil {
		return err
	}
	for _, m := range o.deleted {
		for _, n := range w.cluster.Nodes {
			_, err := m.SignIn(ctx, n.Addr)
			w.rec.Probe(history.Probe{
				ID: m.ID, Node: n.Name, What: "sign in", At: time.Now(), Worked: err == nil, Detail: fmt.Sprint(err),
			})
		}
	}
	return nil
}

// probeEars publishes while the key deleted last listens on all nodes.
func (w *world) probeEars(ctx context.Context, o *operator) error {
	if len(o.deleted) == 0 || o.deleted[len(o.deleted)-1].Secrets() == nil {
		return nil
	}
	m := o.deleted[len(o.deleted)-1]
	type result struct {
		node  string
		heard bool
		err   error
	}
	results := make(chan result, len(w.cluster.Nodes))
	for _, n := range w.cluster.Nodes {
		go func() {
			heard, err := m.Hears(ctx, n.Addr, hearFor)
			results <- result{n.Name, heard, err}
		}()
	}
	for i := range 3 {
		if backoff.Sleep(ctx, hearFor/5) {
			_ = w.clients[i%len(w.clients)].publish(w.last() + i + 1)
		}
	}
	for range w.cluster.Nodes {
		r := <-results
		w.rec.Probe(history.Probe{ID: m.ID, Node: r.node, What: "publication", At: time.Now(), Worked: r.heard,
			Detail: fmt.Sprint(r.err)})
	}
	return nil
}
