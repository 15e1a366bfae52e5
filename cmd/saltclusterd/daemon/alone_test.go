package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/signin"
)

// cluster makes a cluster of three and accepts a minion's key.
func cluster(t *testing.T, dirs ...string) []*testNode {
	t.Helper()
	var nodes []*testNode
	for i, dir := range dirs {
		n := startNode(t, string(rune('a'+i)), dir)
		var err error
		if i == 0 {
			_, err = n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet)
		} else {
			_, err = n.Join(t.Context(), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true, Timeout: longest}, quiet)
		}
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	return nodes
}

func acceptKey(t *testing.T, n *testNode, id, pub string) {
	t.Helper()
	m := n.tenure.Current()
	results, err := m.Consensus.Propose(t.Context(),
		state.KeySet{ID: id, State: state.KeyAccepted, Pub: pub, Audit: m.Audit("test")})
	if err == nil {
		err = results[0].Err()
	}
	require.NoError(t, err)
}

func serves(n *testNode) func() error {
	return func() error {
		m := n.tenure.Current()
		if m == nil || !m.role.ready() {
			return errors.New("not serving")
		}
		return nil
	}
}

func TestServeAlone(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	acceptKey(t, nodes[0], "m1", mustKey(t))
	eventually(t, "the key", func() error {
		if _, ok := nodes[1].tenure.Current().service().keys.Accepted("m1"); !ok {
			return errors.New("not accepted")
		}
		return nil
	})
	for _, n := range nodes {
		n.halt()
	}
	b := startNode(t, "b", dirs[1])
	eventually(t, "the node alone", serves(b))
	s := b.tenure.Current().service()
	if !s.alone.Serving() || s.epochs.Current() == nil {
		t.Errorf("alone %v, epoch %v", s.alone.Serving(), s.epochs.Current())
	}
	if _, ok := s.keys.Accepted("m1"); !ok {
		t.Error("an accepted minion is forgotten")
	}
	if s.keys.OnDisk("m1") != nil {
		t.Error("its requests wait for a key directory that waits for the cluster")
	}
	if err := s.keys.Settled(t.Context()); !errors.Is(err, signin.ErrNoQuorum) {
		t.Errorf("a new key: %v", err)
	}
	if r := b.tenure.Current().checkConsensus(t.Context()); r.Level != health.Fail {
		t.Errorf("health: %+v", r)
	}
	eventually(t, "its own row to say that it is not ready", func() error {
		st, err := b.Status(t.Context())
		if err != nil {
			return err
		}
		list, err := b.Members(t.Context())
		if err != nil {
			return err
		}
		for _, mem := range []adminapi.Member{st.Members[1], list.Members[1]} {
			if !mem.Self || mem.Ready == nil || *mem.Ready || !slices.Contains(mem.Reasons, "consensus") || st.Node.Ready {
				return fmt.Errorf("%+v", mem)
			}
		}
		return nil
	})

	startNode(t, "a", dirs[0])
	eventually(t, "the cluster was found again", func() error {
		if s.alone.Serving() || !b.tenure.Current().Consensus.CaughtUp() {
			return errors.New("still alone")
		}
		return s.keys.Settled(context.Background())
	})
}

func TestServeAlone_Removed(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	nodes[1].halt()
	m := nodes[0].tenure.Current()
	results, err := m.Consensus.Propose(t.Context(), state.MemberRemove{ID: "b", Audit: m.Audit("test")})
	if err == nil {
		err = results[0].Err()
	}
	require.NoError(t, err)
	eventually(t, "b is off the roster", func() error {
		if _, ok := m.Roster.Lookup("b"); ok {
			return errors.New("still on it")
		}
		return nil
	})
	nodes[2].halt() // one answers, and turns b away; the other is down
	b := startNode(t, "b", dirs[1])
	eventually(t, "b runs", func() error {
		if b.tenure.Current() == nil {
			return errors.New("no member yet")
		}
		return nil
	})
	if b.tenure.Current().service().alone.IsAllowed(t.Context()) {
		t.Error("a removed node would serve")
	}
}

func TestStop_PortTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, "a", dir)
	conf, err := os.ReadFile(filepath.Join(dir, "conf"))
	require.NoError(t, err)
	port := regexp.MustCompile(`(?m)^publish_port: (\d+)$`).FindSubmatch(conf)[1]
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%s", port))
	require.NoError(t, err)
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "waiting for the port", func() error {
		if m := n.tenure.Current(); m == nil || !m.service().Serving.Load() {
			return errors.New("not that far")
		}
		return nil
	})
	if r := n.checkEdges(t.Context()); r.Level != health.Fail {
		t.Errorf("health while the port is taken: %+v", r)
	}
	n.stop()
	check.NoError(t, <-n.done, "stopped with")
	n.done = nil
	require.NoError(t, taken.Close())
	eventually(t, "serving when the port is free", serves(startNode(t, "a", dir)))
}

func TestServeAlone_Limit(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	eventually(t, "the last contact is noted", func() error {
		_, err := os.Stat(recovery.ContactPath(nodes[1].cfg.Paths.StateDir))
		return err
	})
	for _, n := range nodes {
		n.halt()
	}
	state := nodes[1].cfg.Paths.StateDir
	long := time.Now().Add(-nodes[1].cfg.Cluster.AloneLimit).Add(5 * time.Second)
	write(t, recovery.ContactPath(state), long.UTC().Format(time.RFC3339), 0o600)
	b := startNode(t, "b", dirs[1])
	eventually(t, "the time is over", func() error {
		if m := b.tenure.Current(); m == nil || !strings.Contains(m.service().WaitsFor(), "cluster_alone_limit") {
			return errors.New("not yet")
		}
		return nil
	})
	if r := b.checkEdges(t.Context()); r.Level != health.Fail || !strings.Contains(r.Reason, "cluster_alone_limit") {
		t.Errorf("health: %+v", r)
	}
	startNode(t, "a", dirs[0])
	eventually(t, "with the cluster it serves again", serves(b))
}

// TestServeAlone_LimitWithoutRestart checks that a node which keeps running has the limit of one that restarts.
func TestServeAlone_LimitWithoutRestart(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	a := startNode(t, "a", dirs[0])
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	b := startNode(t, "b", dirs[1], "cluster_alone_limit: 2s")
	if _, err := b.Join(t.Context(), adminapi.JoinRequest{Peer: a.addr, Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b serves", serves(b))
	a.halt()
	eventually(t, "b serves no more", func() error {
		if m := b.tenure.Current(); m == nil || !strings.Contains(m.service().WaitsFor(), "cluster_alone_limit") {
			return errors.New("it does")
		}
		return nil
	})
	startNode(t, "a", dirs[0])
	eventually(t, "with the cluster it serves again", serves(b))
}
