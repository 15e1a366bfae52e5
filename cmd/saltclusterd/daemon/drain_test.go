package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/zmtp"
)

// subscriber connects to a node's publish port.
func subscriber(t *testing.T, n *testNode) *zmtp.Client {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.cfg.Edge.PublishPort))
	require.NoError(t, err)
	c, err := zmtp.NewClient(t.Context(), conn, zmtp.ClientOptions{SocketType: "SUB"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	before := n.tenure.Current().service().ports.Publish.Stats().Subscribers
	require.NoError(t, c.Subscribe(nil))
	eventually(t, "subscribed", func() error {
		if n.tenure.Current().service().ports.Publish.Stats().Subscribers == before {
			return errors.New("not yet")
		}
		return nil
	})
	return c
}

func listens(n *testNode) bool {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.cfg.Edge.PublishPort))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// told collects progress.
type told struct {
	mu      sync.Mutex
	said    []string
	percent []int
}

func (s *told) progress(step, message string, percent ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, step+": "+message)
	s.percent = append(s.percent, percent...)
}

func (s *told) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

func TestDrain(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b := nodes[0], nodes[1]
	for _, n := range nodes {
		eventually(t, "serving", serves(n))
	}
	eventually(t, "the others are known to be ready", func() error {
		for _, n := range nodes {
			if !n.tenure.Current().Routes().OthersServe(n.id) {
				return fmt.Errorf("%s sees no other node", n.id)
			}
		}
		return nil
	})
	if _, err := a.Drain(t.Context(), adminapi.DrainRequest{Node: "nobody"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Errorf("an unknown node: %v", err)
	}

	// The leader drains itself: its subscribers and its leadership go.
	subs := []*zmtp.Client{subscriber(t, a), subscriber(t, a)}
	var said told
	out, err := b.Drain(t.Context(), adminapi.DrainRequest{Node: "a", Wait: true, WaitJobs: true}, said.progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if out.Node != "a" || out.Ready || len(out.Next) == 0 {
		t.Errorf("%+v", out)
	}
	if n := len(said.percent); n < 2 || said.percent[0] != 0 || said.percent[n-1] != 100 ||
		!slices.IsSorted(said.percent) {
		t.Errorf("its parts: %v\n%s", said.percent, &said)
	}
	for _, c := range subs {
		if _, err := c.ReadMessage(); err == nil {
			t.Error("a subscriber is still there")
		}
	}
	if listens(a) {
		t.Error("a drained node lets minions in")
	}
	eventually(t, "another leader", func() error {
		if l := b.tenure.Current().Consensus.Leader(); l == "a" || l == "" {
			return fmt.Errorf("leader %q", l)
		}
		return nil
	})
	if st, err := a.Status(t.Context()); err != nil || !st.Node.Draining || st.Node.Ready {
		t.Errorf("status: %+v, %v", st.Node, err)
	}

	// It stays drained over a restart, and can be undrained by another node.
	a.halt()
	a = startNode(t, "a", dirs[0])
	nodes[0] = a
	eventually(t, "drained after the restart", func() error {
		if m := a.tenure.Current(); m == nil || m.service().drain.Report().Phase != drain.Drained {
			return errors.New("not yet")
		}
		return nil
	})
	if listens(a) {
		t.Error("a restarted node lets minions in")
	}
	// closed on purpose: load balancers see a drain (404), and no alert is raised
	if r := a.checkEdges(t.Context()); r.Level != health.OK {
		t.Errorf("the edges of a drained node: %+v", r)
	}
	if _, err := b.Undrain(t.Context(), adminapi.UndrainRequest{Node: "a", Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "serving again", serves(a))
	subscriber(t, a)

	// And again, without a restart in between.
	if _, err := a.Drain(t.Context(), adminapi.DrainRequest{Wait: true, Over: time.Millisecond}, quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Undrain(t.Context(), adminapi.UndrainRequest{Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	subscriber(t, a)
	if st, err := a.Status(t.Context()); err != nil || st.Node.Draining {
		t.Errorf("status: %+v, %v", st.Node, err)
	}
}

func TestDrain_LastNode(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir())
	a := nodes[0]
	eventually(t, "serving", serves(a))
	_, err := a.Drain(t.Context(), adminapi.DrainRequest{Wait: true}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(err.Error(), "nowhere to go") {
		t.Errorf("%v", err)
	}
	if _, err := a.Drain(t.Context(), adminapi.DrainRequest{Wait: true, Force: true}, quiet); err != nil {
		t.Error(err)
	}
}

// TestDrain_TakenBack undrains a node in the middle of a long drain.
func TestDrain_TakenBack(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	for _, n := range nodes {
		eventually(t, "serving", serves(n))
	}
	eventually(t, "the other is ready", func() error {
		if !a.tenure.Current().Routes().OthersServe("a") {
			return errors.New("not yet")
		}
		return nil
	})
	subs := []*zmtp.Client{subscriber(t, a), subscriber(t, a), subscriber(t, a)}
	done := make(chan error, 1)
	go func() {
		_, err := b.Drain(context.Background(), adminapi.DrainRequest{Node: "a", Wait: true, Over: time.Hour}, quiet)
		done <- err
	}()
	eventually(t, "the hand-over", func() error {
		if p := a.tenure.Current().service().drain.Report().Phase; p != drain.HandingOver {
			return fmt.Errorf("phase %s", p)
		}
		return nil
	})
	if _, err := a.Undrain(t.Context(), adminapi.UndrainRequest{Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	if err := <-done; adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("the drain that was taken back: %v", err)
	}
	if left := a.tenure.Current().service().ports.Publish.Stats().Subscribers; left < len(subs)-1 {
		t.Errorf("%d subscribers left", left)
	}
	subscriber(t, a)
}

// twoThatServe are two nodes that know each other to be ready.
func twoThatServe(t *testing.T, settings ...string) (a, b *testNode) {
	t.Helper()
	a = startNode(t, "a", t.TempDir(), settings...)
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	b = startNode(t, "b", t.TempDir())
	if _, err := b.Join(t.Context(), adminapi.JoinRequest{Peer: a.addr, Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*testNode{a, b} {
		eventually(t, "serving", serves(n))
		eventually(t, "the other is ready", func() error {
			if !n.tenure.Current().Routes().OthersServe(n.id) {
				return errors.New("not yet")
			}
			return nil
		})
	}
	return a, b
}

// TestDrain_AskedAgain speeds up a drain that would take an hour, and has one that has ended wait for jobs.
func TestDrain_AskedAgain(t *testing.T) {
	t.Parallel()
	a, b := twoThatServe(t)
	for range 3 {
		subscriber(t, a)
	}
	if _, err := b.Drain(t.Context(), adminapi.DrainRequest{Node: "a", Over: time.Hour}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hand-over", func() error {
		if p := a.tenure.Current().service().drain.Report().Phase; p != drain.HandingOver {
			return fmt.Errorf("phase %s", p)
		}
		return nil
	})
	if _, err := b.Drain(t.Context(), adminapi.DrainRequest{Node: "a"}, quiet); err != nil { // only follows it
		t.Fatal(err)
	}
	if left := a.tenure.Current().service().ports.Publish.Stats().Subscribers; left < 2 {
		t.Errorf("%d subscribers left of what was to be handed over in an hour", left)
	}
	if _, err := a.Upgrade(bounded(t), adminapi.UpgradeRequest{Binary: "/bin/true"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("an upgrade meanwhile: %v", err)
	}
	if _, err := b.Drain(bounded(t), adminapi.DrainRequest{Node: "a", Over: time.Millisecond, Wait: true},
		quiet); err != nil {
		t.Fatal(err)
	}
	if left := a.tenure.Current().service().ports.Publish.Stats().Subscribers; left > 0 {
		t.Errorf("%d subscribers left", left)
	}

	const jid = "20261122101500000000"
	a.tenure.Current().service().running.Inherit([]string{jid})
	var said told
	done := make(chan error, 1)
	go func() {
		_, err := b.Drain(bounded(t), adminapi.DrainRequest{Node: "a", Wait: true, WaitJobs: true}, said.progress)
		done <- err
	}()
	eventually(t, "the job is waited for", func() error {
		select {
		case err := <-done:
			t.Fatalf("it is not: %v", err)
		default:
		}
		if !strings.Contains(said.String(), "1 job published here is running") {
			return errors.New(said.String())
		}
		return nil
	})
	endJob(t, a, jid)
	check.NoError(t, <-done)
}

// endJob puts a job with the return of its only minion into a node's job cache.
func endJob(t *testing.T, n *testNode, jid string) {
	t.Helper()
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(jid)))
	dir := filepath.Join(n.master.CacheDir, "jobs", h[:2], h[2:])
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "web1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".minions.p"), []byte("\x91\xa4web1"), 0o600))
}

// TestDrain_AllAtOnce has two operators who each drain one of two nodes.
func TestDrain_AllAtOnce(t *testing.T) {
	t.Parallel()
	a, b := twoThatServe(t)
	for range 3 {
		done := make(chan error, 2)
		for _, n := range []*testNode{a, b} {
			go func() {
				_, err := n.Drain(bounded(t), adminapi.DrainRequest{Wait: true}, quiet)
				done <- err
			}()
		}
		refused := 0
		for range 2 {
			if err := <-done; adminapi.CodeOf(err) == adminapi.CodeRefused && strings.Contains(err.Error(), "nowhere to go") {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused == 0 {
			t.Error("both were drained")
		}
		for _, n := range []*testNode{a, b} {
			if _, err := n.Undrain(bounded(t), adminapi.UndrainRequest{Wait: true}, quiet); err != nil {
				t.Error(err)
			}
			eventually(t, "serving", serves(n))
		}
		for _, n := range []*testNode{a, b} {
			eventually(t, "the other is ready", func() error {
				if !n.tenure.Current().Routes().OthersServe(n.id) {
					return errors.New("not yet")
				}
				return nil
			})
		}
	}
}

// TestStop_BoundedAndHurried stops a node whose drain would take ten minutes.
func TestStop_BoundedAndHurried(t *testing.T) {
	t.Parallel()
	n, _ := twoThatServe(t, "drain_announce: 10m")
	subscriber(t, n)
	n.stop()
	eventually(t, "the drain", func() error {
		if m := n.tenure.Current(); m == nil || !m.service().drain.Draining() {
			return errors.New("not yet")
		}
		return nil
	})
	select {
	case err := <-n.done:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	n.EndGrace()
	check.NoError(t, <-n.done)
	n.done = nil
}
