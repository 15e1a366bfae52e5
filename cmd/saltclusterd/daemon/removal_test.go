package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

func remove(t *testing.T, on *testNode, id string, force bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := on.Remove(ctx, adminapi.RemoveRequest{Node: id, Force: force}, quiet)
	return err
}

// gone returns a condition: the node has ended its membership for good.
func gone(n *testNode) func() error {
	return func() error {
		left, err := membership.ReadRemoval(n.cfg.Paths.StateDir)
		// which goes last
		if err != nil || left == nil || n.tenure.Current() != nil || exists(membership.RecordPath(n.cfg.Paths.StateDir)) {
			return fmt.Errorf("not removed: %v, %v", left, err)
		}
		return nil
	}
}

func wantMembers(n *testNode, want ...string) func() error {
	return func() error {
		var got []string
		if m := n.tenure.Current(); m != nil {
			for _, mem := range m.Consensus.View().Members() {
				got = append(got, string(mem.ID))
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s has %q, not %q", n.id, got, want)
		}
		return nil
	}
}

// writeAside writes a return that a process before has put aside.
func writeAside(t *testing.T, dir, minion string) {
	t.Helper()
	load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "_return", "id": minion, "jid": "20261121040506000001",
		"fun": "test.ping", "return": true}, saltwire.Wire)
	require.NoError(t, err)
	rec, err := spool.AppendRecord(nil, spool.Record{Received: time.Now(), Minion: minion, JID: "20261121040506000001",
		Load: load})
	require.NoError(t, err)
	body := append(binary.BigEndian.AppendUint32([]byte("SCDret\x00\x01"), uint32(len(rec))), rec...)
	write(t, filepath.Join(dir, "state", "returns", "unanswered", minion+".return"), string(body), 0o600)
}

// TestRemove_HandsReturnsOver removes a node whose master does not answer returns. It hands each of them to one other
// node.
func TestRemove_HandsReturnsOver(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(dirs[2], "state", "returns", "unanswered"), 0o700))
	writeAside(t, dirs[2], "web1")
	writeAside(t, dirs[2], "web2")
	nodes := cluster(t, dirs...)
	a, b, c := nodes[0], nodes[1], nodes[2]
	list, err := a.Members(t.Context())
	if err != nil || len(list.Members) != 3 || list.Members[2].Unanswered != 2 {
		t.Errorf("before, a says of c %+v, %v", list.Members, err)
	}
	require.NoError(t, remove(t, a, "c", false))
	eventually(t, "c knows", gone(c))
	if _, err := c.Members(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember ||
		!strings.Contains(err.Error(), "was removed") ||
		strings.Contains(adminapi.HintOf(err), "bootstrap") {
		t.Errorf("a removed node is asked: %v (%s)", err, adminapi.HintOf(err))
	}
	var got []string
	for _, n := range []*testNode{a, b} {
		list, err := n.returnVerbs().UnansweredReturns(t.Context())
		require.NoError(t, err)
		for _, one := range list.Returns {
			got = append(got, one.Minion+" "+one.Function+" "+one.Error)
		}
	}
	slices.Sort(got)
	const why = " test.ping it was put aside on c, which has left the cluster"
	check.EqualSlices(t, got, []string{"web1" + why, "web2" + why}, "the others have")
	if left, err := os.ReadDir(filepath.Join(dirs[2], "state", "returns", "unanswered")); err != nil || len(left) > 0 {
		t.Errorf("c has %v, %v", left, err)
	}
}

// TestRemove_ReturnsAside removes a node with a return that no other one can take. That needs force, and waits for
// nothing.
func TestRemove_ReturnsAside(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	aside := filepath.Join(dirs[2], "state", "returns", "unanswered")
	require.NoError(t, os.MkdirAll(aside, 0o700))
	write(t, filepath.Join(aside, "aa.return"), "of a process before this one", 0o600)
	nodes := cluster(t, dirs...)
	a, c := nodes[0], nodes[2]
	err := remove(t, a, "c", false)
	if adminapi.CodeOf(err) != adminapi.CodeRefused ||
		!strings.Contains(err.Error(), "1 return that its salt-master does not answer") ||
		!strings.Contains(err.Error(), "not handed over: return aa: returns: the file is damaged") {
		t.Fatalf("error %v", err)
	}
	if mem, ok := a.tenure.Current().Consensus.View().Member("c"); !ok || mem.Draining {
		t.Errorf("after the refusal: %+v, %v", mem, ok)
	}
	out, err := a.Remove(t.Context(), adminapi.RemoveRequest{Node: "c", Force: true}, quiet)
	if err != nil || !strings.Contains(strings.Join(out.Next, "\n"),
		"1 return that its salt-master does not answer stays") {
		t.Fatalf("%+v, %v", out, err)
	}
	eventually(t, "c knows", gone(c))
	if !exists(filepath.Join(aside, "aa.return")) {
		t.Error("it is gone")
	}
}

// TestStatus_AfterMembershipChanges checks that the problems in a status fit the membership at once.
func TestStatus_AfterMembershipChanges(t *testing.T) {
	t.Parallel()
	problems := func(n *testNode) string {
		st, err := n.Status(t.Context())
		require.NoError(t, err)
		var said []string
		for _, p := range st.Problems {
			said = append(said, p.Node+": "+p.Message+" -> "+p.Hint)
		}
		return strings.Join(said, "\n")
	}
	first := startNode(t, "a", t.TempDir())
	check.Contains(t, problems(first), "belongs to no cluster yet", "alone")
	if _, err := first.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	if said := problems(first); strings.Contains(said, "no cluster") {
		t.Errorf("founded: %s", said)
	}
	second := startNode(t, "b", t.TempDir())
	problems(second)
	if _, err := second.Join(t.Context(), adminapi.JoinRequest{Peer: first.addr, Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatal(err)
	}
	if said := problems(second); strings.Contains(said, "no cluster") {
		t.Errorf("joined: %s", said)
	}
	if _, err := first.Drain(t.Context(), adminapi.DrainRequest{Node: "b", Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	if said := problems(second); strings.Count(said, "undrain b") != 1 ||
		!strings.Contains(said,
			"b: this node is drained, or being drained: it takes no minions -> when its work is done: saltclusterctl undrain b") {
		t.Errorf("drained: %s", said)
	}
	out, err := first.Remove(t.Context(), adminapi.RemoveRequest{Node: "b", NoWait: true}, quiet)
	if next := strings.Join(out.Next, "\n"); err != nil || !strings.Contains(next, "saltclusterctl haproxy") ||
		!strings.Contains(next, "still removing its vote") {
		t.Fatalf("%+v, %v", out, err)
	}
	eventually(t, "b knows", gone(second))
	if said := problems(second); strings.Contains(said, "drain") ||
		!strings.Contains(said, "was removed from the cluster") {
		t.Errorf("removed: %s", said)
	}
}

// TestRemove removes a living node, a dead one, the leader and the node itself. One joins again.
func TestRemove(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b, c, d := nodes[0], nodes[1], nodes[2], nodes[3]
	acceptKey(t, a, "m1", strings.TrimSpace(mustKey(t)))
	before := a.tenure.Current().Consensus.View().GossipKeys()[0].N

	require.NoError(t, remove(t, a, "d", false), "remove a living node")
	eventually(t, "d knows", gone(d))
	eventually(t, "d is off the roster", wantMembers(b, "a", "b", "c"))
	if r := d.checkMember(t.Context()); r.Level != health.Fail || !strings.Contains(r.Reason, "removed") {
		t.Errorf("health of the removed node: %+v", r)
	}
	if st, err := d.Status(t.Context()); err != nil || st.Removed == "" || len(st.Problems) == 0 {
		t.Errorf("status of the removed node: %+v, %v", st, err)
	}
	eventually(t, "one new gossip key", func() error {
		keys := b.tenure.Current().Consensus.View().GossipKeys()
		if len(keys) != 1 || keys[0].N <= before {
			return fmt.Errorf("%d keys, the first is %d", len(keys), keys[0].N)
		}
		return nil
	})
	if err := remove(t, a, "d", false); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Errorf("remove a node twice: %v", err)
	}
	if _, err := d.Bootstrap(t.Context(), adminapi.BootstrapRequest{},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a removed node founds a cluster: %v", err)
	}
	if _, err := d.Join(t.Context(), adminapi.JoinRequest{Peer: b.addr, Wait: true, Timeout: longest},
		quiet); err != nil {
		t.Fatalf("join again: %v", err)
	}
	if _, ok := d.tenure.Current().service().keys.Accepted("m1"); !ok {
		t.Error("the node that joined again lacks a key")
	}

	c.halt()
	eventually(t, "c is seen dead", func() error {
		if a.tenure.Current().Alive("c") {
			return errors.New("alive")
		}
		return nil
	})
	require.NoError(t, remove(t, b, "c", false), "remove a dead node")
	c = startNode(t, "c", dirs[2])
	eventually(t, "c knows at its start", gone(c))
	c.halt()
	c = startNode(t, "c", dirs[2])
	if _, err := os.Stat(membership.RemovalPath(c.cfg.Paths.StateDir)); err != nil || c.tenure.Current() != nil {
		t.Errorf("c forgot that it was removed: %v", err)
	}

	require.NoError(t, remove(t, a, "a", false), "a node removes itself")
	eventually(t, "a knows", gone(a))
	eventually(t, "a is off the roster", wantMembers(b, "b", "d"))
	var leader node.ID
	eventually(t, "a leader", func() error {
		if leader = b.tenure.Current().Consensus.Leader(); leader == "" {
			return errors.New("nobody")
		}
		return nil
	})
	require.NoError(t, remove(t, b, string(leader), false), "remove the leader")
	left := b
	if leader == b.id {
		left = d
	}
	eventually(t, "one is left", wantMembers(left, string(left.id)))
	if err := remove(t, left, string(left.id), true); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("remove the last one: %v", err)
	}
}

func mustKey(t *testing.T) string {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	return key.PublicText()
}

func TestRemove_CostsMajority(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir(), t.TempDir())
	nodes[2].halt()
	eventually(t, "c is seen dead", func() error {
		if nodes[0].tenure.Current().Alive("c") {
			return errors.New("alive")
		}
		return nil
	})
	err := remove(t, nodes[0], "b", false)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(err.Error(), "c is down") ||
		!strings.Contains(adminapi.HintOf(err), "remove c") {
		t.Errorf("remove b: %v (%s)", err, adminapi.HintOf(err))
	}
	nodes[1].halt()
	// an answer of b may be on its way to raft's heartbeat for as long as a machine is busy
	eventually(t, "the majority is seen lost", func() error {
		if nodes[0].tenure.Current().Consensus.Status().HasQuorum {
			return errors.New("it is there")
		}
		return nil
	})
	err = remove(t, nodes[0], "c", false)
	if adminapi.CodeOf(err) != adminapi.CodeNoQuorum ||
		!strings.Contains(adminapi.HintOf(err), "recover --force-new-cluster") {
		t.Errorf("without a quorum: %v (%s)", err, adminapi.HintOf(err))
	}
	_, err = nodes[0].Drain(bounded(t), adminapi.DrainRequest{Node: "b", Force: true}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeNoQuorum || adminapi.HintOf(err) == "" {
		t.Errorf("drain without a quorum: %v (%s)", err, adminapi.HintOf(err))
	}
	_, err = nodes[0].Rotate(bounded(t), adminapi.RotateRequest{}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeNoQuorum || adminapi.HintOf(err) == "" {
		t.Errorf("rotate without a quorum: %v (%s)", err, adminapi.HintOf(err))
	}
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir(), t.TempDir())
	for _, to := range []string{"b", "c", "c", "a"} {
		for _, n := range nodes {
			if _, err := n.Transfer(t.Context(), adminapi.TransferRequest{To: to, Timeout: longest}, quiet); err != nil {
				t.Fatalf("%s: transfer to %s: %v", n.id, to, err)
			}
			if l := n.tenure.Current().Consensus.Leader(); string(l) != to {
				t.Errorf("%s: %s leads, not %s", n.id, l, to)
			}
		}
	}
	if _, err := nodes[1].Transfer(t.Context(), adminapi.TransferRequest{To: "x"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("to a stranger: %v", err)
	}
	for _, to := range []string{"b", "a"} { // nobody waits for what the node that was asked hears
		out, err := nodes[2].Transfer(t.Context(), adminapi.TransferRequest{To: to, NoWait: true}, quiet)
		if err != nil || out.Node != to || len(out.Next) != 1 {
			t.Fatalf("to %s without waiting: %+v, %v", to, out, err)
		}
		for _, n := range nodes {
			eventually(t, to+" leads", func() error {
				if l := n.tenure.Current().Consensus.Leader(); string(l) != to {
					return fmt.Errorf("%s: %q leads", n.id, l)
				}
				return nil
			})
		}
	}
	out, err := nodes[1].Transfer(t.Context(), adminapi.TransferRequest{}, quiet)
	if err != nil || out.Node == "a" {
		t.Errorf("to anybody: %+v, %v", out, err)
	}
	// A leader that stops hands over: the others have one before an election could have found it.
	leader := nodes[slices.IndexFunc(nodes, func(n *testNode) bool { return string(n.id) == out.Node })]
	leader.halt()
	for _, n := range nodes {
		if n != leader {
			eventually(t, "another leader", func() error {
				if l := n.tenure.Current().Consensus.Leader(); l == "" || l == leader.id {
					return fmt.Errorf("%q leads", l)
				}
				return nil
			})
		}
	}
}

func TestOpen_LogGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startNode(t, "a", dir)
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the membership says that it was born", func() error {
		m, err := membership.ReadRecord(a.cfg.Paths.StateDir)
		if err == nil && !m.Born {
			err = errors.New("not yet")
		}
		return err
	})
	a.halt()
	require.NoError(t, os.RemoveAll(membership.RaftDir(a.cfg.Paths.StateDir)))
	a = startNode(t, "a", dir)
	eventually(t, "it knows", gone(a))
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("it founds a second cluster: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
