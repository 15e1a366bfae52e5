//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// behindLab is a cluster of masters with disks of their own, HAProxy, minions that the test plays, and, in the last step,
// one that is real and knows only the last node.
type behindLab struct {
	*lab.Cluster
	minions  []*byteMinion
	attached *lab.Minion
	http     *http.Client
}

// TestBehind deletes keys that a node cannot learn of, because its disk is full or its link is cut. At last, disks
// that are full take no returns.
func TestBehind(t *testing.T) {
	t.Parallel()
	cuts := 1
	if os.Getenv("SALTCLUSTER_LONG") != "" {
		cuts = 5
	}
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{Masters: lab.Versions, Disk: 512, DaemonSettings: metricsForAll})
	if errors.Is(err, lab.ErrNoDisk) {
		t.Skip(err)
	}
	labtest.Must(t, err)
	labtest.Must(t, c.Form(t.Context()))
	labtest.Must(t, c.StartEdge(t.Context()))
	b := &behindLab{Cluster: c}
	b.http = &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.LB.Host().Dial(ctx, network, addr)
		},
	}}
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	for i := range cuts + 1 {
		b.minions = append(b.minions, &byteMinion{
			host: c.LB.Host(), id: fmt.Sprint("leaver-", i), key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
			pin: masterPub(t, c.Nodes[0].Master),
		})
	}
	admit(t, c, b.minions...)
	t.Run("full disk", b.testFullDisk) // before any pings: who has just come gets the jobs of the last minute
	t.Run("cut off", func(t *testing.T) {
		var applied, ready []time.Duration
		for _, m := range b.minions[1:] {
			a, r := b.cutOff(t, m)
			applied, ready = append(applied, a), append(ready, r)
		}
		slices.Sort(applied)
		slices.Sort(ready)
		t.Logf("after the heal the deletion was in force after %v, the node ready after %v", applied, ready)
	})
	t.Run("returns and full disks", b.testFullReturns)
}

// probe asks a node's health port.
func (b *behindLab) probe(n *lab.Node, path string) int {
	resp, err := b.http.Get("http://" + n.Addr + ":4580" + path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// deleted deletes a minion's key on a node.
func deleted(t *testing.T, n *lab.Node, id string) {
	t.Helper()
	res, err := n.Daemon.Ctl(t.Context(), "keys", "delete", id, "--yes")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
}

// untilTold is a job that says that it runs, and ends when it is told to. Both are files on its minion. It returns more
// than fits into what a journal has of its last block.
type untilTold struct {
	jid, began, end string
}

// beginJob publishes such a job on a node and waits until the minion runs it.
func (b *behindLab) beginJob(t *testing.T, on *lab.Node, name string) *untilTold {
	t.Helper()
	labtest.Must(t, os.MkdirAll(b.attached.StateDir(), 0o755))
	j := &untilTold{began: filepath.Join(b.attached.StateDir(), name+".began")}
	j.end = strings.TrimSuffix(j.began, "began") + "end"
	j.jid = asyncOn(t, on, []string{b.attached.ID}, "cmd.run",
		fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.1; done; head -c 40000 /dev/zero | tr '\\0' r", j.began, j.end),
		inShell)
	eventually(t, time.Minute, name+" to run", func() bool { _, err := os.Stat(j.began); return err == nil })
	return j
}

// testFullReturns has a real minion return what a node has published whose disk is full now. Another node's journal
// takes it; with all disks full none does and no master's Python either, so the minion hears nothing and sends it
// again.
func (b *behindLab) testFullReturns(t *testing.T) {
	ctx, full := t.Context(), b.Nodes[2]
	var err error
	b.attached, err = b.LB.Host().NewMinion(lab.Versions[0], "attached", full.Addr)
	labtest.Must(t, err)
	labtest.Must(t, b.attached.Start(ctx))
	labtest.Must(t, b.Nodes[0].Master.AcceptKeys(ctx, 3*time.Minute, b.attached.ID))
	labtest.Must(t, lab.Answering(ctx, full.Master, b.attached.ID))
	lost := func() float64 {
		return metricSum(t, full, "saltcluster_minion_lost_requests_total", `command="_return"`, `route="journal"`)
	}
	watch := full.NewProcess(lab.Spec{
		Name: "returned", Env: full.Master.Env(), Argv: []string{"/usr/bin/env", "salt-run", "state.event", "pretty=False"},
	})
	labtest.Must(t, watch.Start(ctx))
	defer func() { _ = watch.Kill() }()
	eventually(t, time.Minute, "the listener to hear", func() bool {
		labtest.Must(t, lab.Answering(ctx, full.Master, b.attached.ID))
		return watch.Logged("salt/job/")
	})
	for _, s := range []struct {
		name string
		full []*lab.Node
	}{{"one disk", []*lab.Node{full}}, {"all disks", b.Nodes}} {
		job := b.beginJob(t, full, strings.ReplaceAll(s.name, " ", "-"))
		handed, unheard := outcomes(t, full, "handed_off"), lost()
		for _, n := range s.full {
			labtest.Must(t, n.FillDisk())
		}
		labtest.Must(t, os.WriteFile(job.end, nil, 0o644))
		if len(s.full) == 1 {
			eventually(t, time.Minute, "another node to keep the return", func() bool {
				return outcomes(t, full, "handed_off") > handed
			})
		} else {
			eventually(t, time.Minute, "the return to be given up", func() bool { return lost() > unheard })
			if got := outcomes(t, full, "handed_off"); got != handed {
				t.Errorf("%s: a full disk has taken %v returns", s.name, got-handed)
			}
		}
		if tag := "salt/job/" + job.jid + "/ret/"; watch.Logged(tag) {
			t.Errorf("%s: the return is on the bus before a disk has it", s.name)
		}
		began := time.Now()
		for _, n := range s.full {
			labtest.Must(t, n.FreeDisk())
		}
		inCacheOf(t, b.Cluster, full, job.jid, 2*time.Minute, b.attached.ID)
		eventually(t, time.Minute, "the event of the return", func() bool {
			return watch.Logged("salt/job/" + job.jid + "/ret/" + b.attached.ID)
		})
		t.Logf("%s: the return was in the job cache %s after there was room", s.name,
			time.Since(began).Round(time.Millisecond))
	}
	labtest.Must(t, b.Whole(ctx, 2*time.Minute))
}

// testFullDisk deletes a minion's key while a node's disk takes no more entries.
func (b *behindLab) testFullDisk(t *testing.T) {
	ctx, leaver, full := t.Context(), b.minions[0], b.Nodes[2]
	if _, err := b.Nodes[0].Daemon.Ctl(ctx, "transfer", b.Nodes[0].Name); err != nil {
		t.Logf("leadership not handed over: %v", err)
	}
	heard, err := leaver.signIn(ctx, full.Addr)
	if labtest.Must(t, err); heard != "accepted" {
		t.Fatalf("%s hears %q", leaver.id, heard)
	}
	labtest.Must(t, full.FillDisk())
	for i := 0; i < 1500 && b.probe(full, "/readyz") == http.StatusOK; i++ { // the log's own free pages
		m := *leaver
		m.id = fmt.Sprint("stranger-", i)
		_, _ = m.signIn(ctx, b.Nodes[0].Addr)
	}
	deleted(t, b.Nodes[0], leaver.id)
	ears := leaver.hearAll(t, b.Cluster)
	old := leaver.got.aes
	began := time.Now()
	eventually(t, 2*time.Minute, "HAProxy to take the node out", func() bool {
		states, err := b.LB.Servers(ctx, full.Name)
		down := err == nil && len(states) > 0
		for _, s := range states {
			down = down && s.Status != "UP"
		}
		return down
	})
	t.Logf("HAProxy took the node out %s after the deletion", time.Since(began).Round(time.Millisecond))
	if b.probe(full, "/req") == http.StatusOK || b.probe(full, "/pub") == http.StatusOK {
		t.Error("the node says that it serves minions")
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if heard, err := leaver.signIn(short, full.Addr); err == nil && heard == "accepted" {
		t.Error("the deleted minion signs in")
	}
	if err := leaver.works(short, full.Addr); err == nil {
		t.Error("the deleted minion is served")
	}
	_, _ = b.Nodes[0].Master.Pub(ctx, "*", "test.ping")
	master, err := saltcrypt.ParsePublicKey(leaver.pin)
	labtest.Must(t, err)
	for _, e := range ears {
		if read := e.jobs(t, old, master, 0); e.on == full.Name && len(read) > 0 {
			t.Errorf("the deleted minion reads jobs there: %v", read)
		}
		e.stop()
	}
	labtest.Must(t, full.FreeDisk())
	began = time.Now()
	labtest.Must(t, b.gone(ctx, full, leaver.id))
	t.Logf("the deletion was in force %s after there was room", time.Since(began).Round(time.Millisecond))
	eventually(t, 2*time.Minute, "HAProxy to take the node back", func() bool {
		states, err := b.LB.Servers(ctx, full.Name)
		up := err == nil && len(states) > 0
		for _, s := range states {
			up = up && s.Status == "UP"
		}
		return up
	})
	labtest.Must(t, b.Whole(ctx, 2*time.Minute))
}

// gone waits until a node has deleted a key.
func (b *behindLab) gone(ctx context.Context, n *lab.Node, id string) error {
	return lab.Eventually(ctx, time.Minute, id+" to be deleted on "+n.Name, func(context.Context) error {
		if got := n.Master.KeyState(id); got == "minions" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// cutOff deletes a key while a node is cut off, and returns how long after the heal that is in force there, and the
// node ready.
func (b *behindLab) cutOff(t *testing.T, m *byteMinion) (applied, ready time.Duration) {
	ctx, lost := t.Context(), b.Nodes[2]
	labtest.Must(t, b.Lab.Isolate(ctx, lost.Host))
	time.Sleep(2 * time.Second) // the others may have to elect
	deleted(t, b.Nodes[0], m.id)
	time.Sleep(62 * time.Second) // raft would wait up to ten seconds by now
	labtest.Must(t, b.Lab.Heal(ctx))
	healed := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		for b.probe(lost, "/readyz") != http.StatusOK && time.Since(healed) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		ready = time.Since(healed).Round(time.Millisecond)
	})
	labtest.Must(t, b.gone(ctx, lost, m.id))
	applied = time.Since(healed).Round(time.Millisecond)
	wg.Wait()
	return applied, ready
}
