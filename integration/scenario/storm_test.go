//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// servedWithin is the promise: everyone is served again, and nobody has failed to sign in, a minute after a node died.
const servedWithin = time.Minute

// stormSize is how many minions take part; "make test-storm" has 5,000.
func stormSize(t *testing.T) int {
	text := os.Getenv("HERD")
	if text == "" {
		return 600
	}
	n, err := strconv.Atoi(text)
	labtest.Must(t, err)
	return n
}

// Hundreds of played minions of all versions on three nodes behind HAProxy: nobody misses a job when the cluster's AES
// key changes, and all come back when a node's saltclusterd is killed.
func TestStorm(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	ctx := t.Context()
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, LBPerPort: true, DaemonSettings: lab.Settings{
			"rotate_window": rotateWindow.String(), "new_minion_rate": newcomersRate, "new_minion_rate_per_address": 0,
		},
	})
	labtest.Must(t, err)
	h := herdAt(t, l, c.LB.Host().Addr, stormSize(t), lab.Versions...)
	keys := append(h.IDs(), "leaver-1", "leaver-2")
	labtest.Must(t, herd.Accept(filepath.Join(c.Nodes[0].Master.PKIDir(), "minions"), h.Key(), keys...))
	labtest.Must(t, c.Form(ctx))
	labtest.Must(t, c.StartEdge(ctx))
	loose(t, h, 5*time.Minute)
	for _, n := range c.Nodes {
		everyoneHears(t, h, n)
	}
	t.Run("a key is removed", func(t *testing.T) { stormRotation(t, c, h) })
	t.Run("strangers come", func(t *testing.T) { stormStrangers(t, c, h) })
	t.Run("the AES key is rotated", func(t *testing.T) { stormSchedule(t, c, h) })
	t.Run("saltclusterd is killed", func(t *testing.T) { stormKill(t, c, h) })
	s := h.Stats()
	if s.Stale+s.Discarded+s.SignInFailed > 0 || s.Err() != nil {
		t.Errorf("stale %d, discarded %d, failed to sign in %d, wrong: %v", s.Stale, s.Discarded, s.SignInFailed, s.Err())
	}
}

// publishAsync publishes test.ping and returns the jid.
func publishAsync(t *testing.T, n *lab.Node) string {
	t.Helper()
	res, err := n.Master.Run(t.Context(), "salt", "--async", "herd*", "test.ping")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	f := strings.Fields(res.Stdout)
	if len(f) == 0 {
		t.Fatalf("no jid: %s", res.Output())
	}
	return f[len(f)-1]
}

func heardByAll(t *testing.T, h *herd.Herd, n *lab.Node, jid string) {
	t.Helper()
	size := h.Stats().Minions
	err := lab.Eventually(t.Context(), 2*time.Minute, "everyone to run "+jid, func(context.Context) error {
		if j := h.Job(jid); j.Heard < size {
			return fmt.Errorf("%d of %d have, not %.200s", j.Heard, size, strings.Join(h.Missed(jid), " "))
		}
		return nil
	})
	check.NoError(t, err, "job of", n.Name)
}

// everyoneHears publishes a job that must reach the whole herd.
func everyoneHears(t *testing.T, h *herd.Herd, n *lab.Node) {
	t.Helper()
	heardByAll(t, h, n, publishAsync(t, n))
}

// The AES key changes. With and without a job right behind, everyone hears everything and signs in once.
func stormRotation(t *testing.T, c *lab.Cluster, h *herd.Herd) {
	for i, quiet := range []bool{true, false} {
		h.Reset()
		before := h.Stats()
		n := c.Nodes[i]
		res, err := n.Master.Run(t.Context(), "salt-key", "-y", "-d", fmt.Sprint("leaver-", i+1))
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		began := time.Now()
		var jobs []string
		for _, from := range c.Nodes {
			if !quiet {
				jobs = append(jobs, publishAsync(t, from))
			}
		}
		labtest.Must(t, lab.Eventually(t.Context(), 5*time.Minute, "everyone to have the new key",
			func(context.Context) error {
				if s := h.Stats(); s.SignIns < before.SignIns+s.Minions || s.SigningIn > 0 {
					return fmt.Errorf("%d of %d have signed in, %d are at it", s.SignIns-before.SignIns, s.Minions, s.SigningIn)
				}
				return nil
			}))
		s := h.Stats()
		t.Logf("%d minions signed in within %s of the removal (jobs published meanwhile: %t); a sign-in took %s, %s at worst",
			s.Minions, time.Since(began).Round(100*time.Millisecond), !quiet,
			herd.Quantile(s.SignInTimes, 0.5).Round(time.Millisecond),
			herd.Quantile(s.SignInTimes, 1).Round(time.Millisecond))
		for i, jid := range jobs {
			heardByAll(t, h, c.Nodes[i], jid)
		}
		if extra := s.SignIns - before.SignIns - s.Minions; extra > s.Minions/20 {
			t.Errorf("%d sign-ins too many", extra)
		}
	}
}

// rotateWindow is over what time the minions are moved to a new AES key; five minutes by default.
const rotateWindow = 15 * time.Second

// A rotation that nobody is in a hurry for: jobs published while it goes on reach those that hold the old key and those
// that hold the new one, and minions sign in one after the other whatever is published.
func stormSchedule(t *testing.T, c *lab.Cluster, h *herd.Herd) {
	h.Reset()
	before := h.Stats()
	res, err := c.Nodes[2].Daemon.Ctl(t.Context(), "rotate", "aes", "--yes")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	busiest, halfway := 0, 0
	for i := range 3 {
		everyoneHears(t, h, c.Nodes[i])
		busiest = max(busiest, h.Stats().SigningIn)
		if i == 0 { // three jobs of thousands of minions may take longer than the window
			halfway = h.Stats().SignIns - before.SignIns
		}
	}
	labtest.Must(t, lab.Eventually(t.Context(), 2*rotateWindow, "everyone to have the new key",
		func(context.Context) error {
			s := h.Stats()
			busiest = max(busiest, s.SigningIn)
			if s.SignIns < before.SignIns+s.Minions || s.SigningIn > 0 {
				return fmt.Errorf("%d of %d have signed in", s.SignIns-before.SignIns, s.Minions)
			}
			return nil
		}))
	s := h.Stats()
	t.Logf("%d of %d had signed in when the first of three jobs was done, all at the end; never more than %d at a time; a sign-in took %s at worst",
		halfway, s.Minions, busiest, herd.Quantile(s.SignInTimes, 1).Round(time.Millisecond))
	if extra := s.SignIns - before.SignIns - s.Minions; extra > s.Minions/20 || halfway >= s.Minions {
		t.Errorf("%d sign-ins too many; %d halfway", extra, halfway)
	}
	for _, n := range c.Nodes {
		everyoneHears(t, h, n)
	}
}

// newcomersRate is how many unknown ids per second a node lets through here, after forty at once.
const newcomersRate = 1

// Unknown ids come by the hundred: all hear that they are pending, few are kept, and the others are served meanwhile.
func stormStrangers(t *testing.T, c *lab.Cluster, h *herd.Herd) {
	const many = 300
	s := namedHerd(t, c.Lab, "strange", c.LB.Host().Addr, many, many, lab.Versions...)
	began := time.Now()
	s.Open(t.Context())
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "all to hear that they are pending",
		func(context.Context) error {
			if st := s.Stats(); st.Pended < many {
				return fmt.Errorf("%d of %d have", st.Pended, many)
			}
			return nil
		}))
	for _, n := range c.Nodes {
		everyoneHears(t, h, n)
	}
	labtest.Must(t, s.Close())
	if st := s.Stats(); st.SignIns+st.SignInFailed > 0 || st.Err() != nil {
		t.Errorf("%d signed in, %d failed: %v", st.SignIns, st.SignInFailed, st.Err())
	}
	kept := 0
	for _, n := range c.Nodes {
		entries, err := os.ReadDir(filepath.Join(n.Master.PKIDir(), "minions_pre"))
		labtest.Must(t, err)
		kept = max(kept, len(entries))
	}
	limit := len(c.Nodes) * newcomersRate * (40 + int(time.Since(began).Seconds()+1))
	t.Logf("%d of %d unknown ids are listed as pending", kept, many)
	if kept > limit || kept == 0 {
		t.Errorf("%d keys of strangers are kept, want at most %d", kept, limit)
	}
}

// A node's saltclusterd dies. All of its minions are served by the others, none fails to sign in.
func stormKill(t *testing.T, c *lab.Cluster, h *herd.Herd) {
	n := c.Nodes[1]
	h.Reset()
	before := h.Stats()
	labtest.Must(t, n.Daemon.Kill())
	killed := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), servedWithin)
	defer cancel()
	s, err := h.AwaitServed(ctx, before)
	labtest.Must(t, err)
	t.Logf("%d minions lost their connection, all were served again %s after the kill; %d sign-ins with %d requests, %s at worst",
		s.Disconnects-before.Disconnects, s.LastServed.Sub(killed).Round(10*time.Millisecond), s.SignIns-before.SignIns,
		s.SignInTries-before.SignInTries, herd.Quantile(s.SignInTimes, 1).Round(time.Millisecond))
	if failed := s.SignInFailed - before.SignInFailed; failed > 0 {
		t.Errorf("%d minions failed to sign in", failed)
	}
	for _, from := range []*lab.Node{c.Nodes[0], c.Nodes[2]} {
		everyoneHears(t, h, from)
	}
	labtest.Must(t, n.Daemon.Start(t.Context()))
	labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
}
