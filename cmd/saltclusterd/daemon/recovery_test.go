package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/archive"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	return ctx
}

// TestRecover loses two of three nodes. The third becomes a cluster of one. The others notice it when they come back,
// and join again.
func TestRecover(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b := nodes[0], nodes[1]
	pub := mustKey(t)
	acceptKey(t, a, "m1", pub)
	session := a.tenure.Current().service().keys.Session("m1", pub)
	if _, err := a.RecoverPlan(t.Context()); adminapi.CodeOf(err) != adminapi.CodeRefused ||
		!strings.Contains(err.Error(), "majority") {
		t.Errorf("a plan while all is well: %v", err)
	}
	uuid := a.tenure.Current().Record.UUID
	b.halt()
	nodes[2].halt()
	var plan adminapi.RecoverPlan
	eventually(t, "the majority is lost", func() (err error) {
		plan, err = a.RecoverPlan(t.Context())
		return err
	})
	if len(plan.Drop) != 2 || plan.Keys != 1 || time.Since(plan.LastContact) > time.Minute {
		t.Errorf("%+v", plan)
	}
	check.NoError(t, serves(a)(), "without a majority it does not serve")
	if r := a.tenure.Current().checkConsensus(t.Context()); r.Level != health.Fail ||
		!strings.Contains(r.Hint, "recover --force-new-cluster") {
		t.Errorf("health: %+v", r)
	}
	if _, err := a.Recover(bounded(t), adminapi.RecoverRequest{Rev: plan.Rev + 1},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("another plan: %v", err)
	}
	out, err := a.Recover(bounded(t), adminapi.RecoverRequest{Rev: plan.Rev}, quiet)
	if err != nil || out.UUID != uuid || len(out.Next) < 2 ||
		!strings.Contains(strings.Join(out.Next, " "), "saltclusterctl join "+a.addr) || out.Role != adminapi.RoleVoter {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, ok := a.tenure.Current().service().keys.Accepted("m1"); !ok {
		t.Error("a key is lost")
	}
	acceptKey(t, a, "m2", mustKey(t))
	eventually(t, "alone on the roster", wantMembers(a, "a"))
	eventually(t, "another session seed, for those who were dropped know the one before", func() error {
		if a.tenure.Current().service().keys.Session("m1", pub) == session {
			return errors.New("it is the one before")
		}
		return nil
	})

	b = startNode(t, "b", dirs[1])
	eventually(t, "b learns that it was left behind", gone(b))
	if left, err := membership.ReadRemoval(b.cfg.Paths.StateDir); err != nil ||
		!strings.Contains(left.Reason, "recovered without") {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := b.Join(bounded(t), adminapi.JoinRequest{Peer: a.addr, Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.tenure.Current().service().keys.Accepted("m2"); !ok {
		t.Error("who joined again lacks a key")
	}
	a.halt()
	a = startNode(t, "a", dirs[0])
	eventually(t, "after a restart", wantMembers(a, "a", "b"))
	check.Equal(t, a.tenure.Current().standing.Generation(), 1, "generation")
}

// TestRecover_OthersStepDown starts the nodes that were left behind first. They decide without the survivor until they
// reach it.
func TestRecover_OthersStepDown(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a := nodes[0]
	nodes[1].halt()
	nodes[2].halt()
	var plan adminapi.RecoverPlan
	eventually(t, "the majority is lost", func() (err error) {
		plan, err = a.RecoverPlan(t.Context())
		return err
	})
	if _, err := a.Recover(bounded(t), adminapi.RecoverRequest{Rev: plan.Rev}, quiet); err != nil {
		t.Fatal(err)
	}
	a.halt()
	b, c := startNode(t, "b", dirs[1]), startNode(t, "c", dirs[2])
	eventually(t, "the old majority goes on", func() error {
		if m := c.tenure.Current(); m == nil || !m.Consensus.CaughtUp() || b.tenure.Current() == nil || !b.tenure.Current().Consensus.CaughtUp() {
			return errors.New("not yet")
		}
		return nil
	})
	a = startNode(t, "a", dirs[0])
	eventually(t, "b steps down", gone(b))
	eventually(t, "c steps down", gone(c))
	eventually(t, "a goes on", serves(a))
}

func saved(t *testing.T, n *testNode) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, n.SaveSnapshot(bounded(t), &file))
	return file.Bytes()
}

func TestRestoreSnapshot_EmptyMachine(t *testing.T) {
	t.Parallel()
	a := startNode(t, "a", t.TempDir())
	if _, err := a.Bootstrap(bounded(t), adminapi.BootstrapRequest{Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	pub := mustKey(t)
	acceptKey(t, a, "m1", pub)
	file := saved(t, a)
	h, err := archive.Inspect(bytes.NewReader(file))
	if err != nil || h.ClusterID != "test" || h.Keys.Accepted != 1 || len(h.Members) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, err := a.RestoreSnapshot(bounded(t), adminapi.RestoreRequest{}, bytes.NewReader(file),
		quiet); adminapi.CodeOf(err) != adminapi.CodeMember {
		t.Errorf("over a cluster: %v", err)
	}
	session := a.tenure.Current().service().keys.Session("m1", pub)
	a.halt()

	z := startNode(t, "z", t.TempDir())
	for name, bad := range map[string][]byte{"cut": file[:len(file)-5], "nothing": nil} {
		if _, err := z.RestoreSnapshot(bounded(t), adminapi.RestoreRequest{}, bytes.NewReader(bad),
			quiet); adminapi.CodeOf(err) != adminapi.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := z.RestoreSnapshot(bounded(t), adminapi.RestoreRequest{Wait: true}, bytes.NewReader(file), quiet)
	if err != nil || out.UUID != h.UUID || !out.Ready {
		t.Fatalf("%+v, %v", out, err)
	}
	sameIdentity(t, a, z)
	if !slices.ContainsFunc(out.Next, func(s string) bool {
		return strings.Contains(s, "accepted again") && strings.Contains(s, "keys delete")
	}) {
		t.Errorf("nothing is said of deletions since: %q", out.Next)
	}
	eventually(t, "another session seed, for whoever was left behind knows the one in the snapshot", func() error {
		if z.tenure.Current().service().keys.Session("m1", pub) == session || z.tenure.Current().Consensus.View().SeedDue() {
			return errors.New("it is the one in the snapshot")
		}
		return nil
	})
	if !slices.Contains(z.tenure.Current().service().keys.FormerSessions("m1", pub), session) {
		t.Error("a minion that has not signed in since is not served")
	}
	eventually(t, "the key file", func() error {
		_, err := os.Stat(filepath.Join(z.master.PkiDir, "minions", "m1"))
		return err
	})
	b := startNode(t, "b", t.TempDir())
	if _, err := b.Join(bounded(t), adminapi.JoinRequest{Peer: z.addr, Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both", wantMembers(b, "b", "z"))
}

// TestRestoreSnapshot_BesideItsCluster refuses a restore while a member of the saved cluster is there. That one would
// step down, because a restored cluster has a later generation.
func TestRestoreSnapshot_BesideItsCluster(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, c := nodes[0], nodes[2]
	file := saved(t, a)
	c.halt()
	require.NoError(t, os.RemoveAll(membership.RaftDir(c.cfg.Paths.StateDir)))
	c = startNode(t, "c", dirs[2])
	eventually(t, "c knows that its log is gone", gone(c))
	_, err := c.RestoreSnapshot(bounded(t), adminapi.RestoreRequest{Wait: true}, bytes.NewReader(file), quiet)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(adminapi.HintOf(err), "join "+a.addr) &&
		!strings.Contains(adminapi.HintOf(err), "join "+nodes[1].addr) {
		t.Errorf("restored beside a and b: %v (%s)", err, adminapi.HintOf(err))
	}
	if _, err := membership.ReadRemoval(c.cfg.Paths.StateDir); err != nil ||
		exists(membership.RecordPath(c.cfg.Paths.StateDir)) {
		t.Errorf("something was changed: %v", err)
	}
	acceptKey(t, a, "m1", mustKey(t)) // which needs the majority that there was
	a.halt()
	nodes[1].halt()
	if _, err := c.RestoreSnapshot(bounded(t), adminapi.RestoreRequest{Wait: true}, bytes.NewReader(file),
		quiet); err != nil {
		t.Errorf("when all others are gone: %v", err)
	}
}

// TestRecover_TwoNodes recovers two nodes that cannot reach each other. Both report it when they can. One is given up
// and joins the other.
func TestRecover_TwoNodes(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b := nodes[0], nodes[1]
	recovered := func(n *testNode) {
		var plan adminapi.RecoverPlan
		eventually(t, "the majority is lost", func() (err error) {
			plan, err = n.RecoverPlan(t.Context())
			return err
		})
		if _, err := n.Recover(bounded(t), adminapi.RecoverRequest{Rev: plan.Rev}, quiet); err != nil {
			t.Fatal(err)
		}
	}
	nodes[2].halt()
	b.halt()
	recovered(a)
	a.halt()
	b = startNode(t, "b", dirs[1])
	recovered(b)
	a = startNode(t, "a", dirs[0])
	says := func(n *testNode, other string) func() error {
		return func() error {
			st, err := n.Status(t.Context())
			if err != nil {
				return err
			}
			for _, p := range st.Problems {
				if p.Node == other && strings.Contains(p.Message, "two clusters") && strings.Contains(p.Hint, "membership.json") {
					return nil
				}
			}
			return fmt.Errorf("%+v", st.Problems)
		}
	}
	eventually(t, "a says that b is a rival", says(a, "b"))
	eventually(t, "b says that a is a rival", says(b, "a"))

	b.halt() // as the hint says
	require.NoError(t, os.Remove(membership.RecordPath(b.cfg.Paths.StateDir)))
	b = startNode(t, "b", dirs[1])
	if _, err := b.Join(bounded(t), adminapi.JoinRequest{Peer: a.addr, Wait: true}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a reports no rival", func() error {
		if says(a, "b")() == nil {
			return errors.New("not yet")
		}
		return nil
	})
	if err := says(b, "a")(); err == nil {
		t.Error("b still says that a is a rival")
	}
}

// TestRecover_AtOnce refuses the second operator at once.
func TestRecover_AtOnce(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a := nodes[0]
	nodes[1].halt()
	var plan adminapi.RecoverPlan
	eventually(t, "the majority is lost", func() (err error) {
		plan, err = a.RecoverPlan(t.Context())
		return err
	})
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			_, err := a.Recover(bounded(t), adminapi.RecoverRequest{Rev: plan.Rev}, quiet)
			done <- err
		}()
	}
	fine := 0
	for range cap(done) {
		switch err := <-done; adminapi.CodeOf(err) {
		case "":
			fine++
		case adminapi.CodeBusy, adminapi.CodeRefused: // while the first one is at work, and afterwards
		default:
			t.Errorf("%v", err)
		}
	}
	check.Equal(t, fine, 1, "recoveries")
	check.Equal(t, a.tenure.Current().standing.Generation(), 1, "generation")
}

// TestWitness checks that a witness votes, lets one of two nodes fail, has no private key and reads no configuration of
// a master.
func TestWitness(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs[:2]...)
	a, b := nodes[0], nodes[1]
	w := startNode(t, "w", dirs[2], "cluster_witness: true")
	for _, path := range []string{"master", "salt-master"} { // whoever reads this does not start again
		write(t, filepath.Join(dirs[2], path), "{", 0o755)
	}
	if _, err := w.Bootstrap(bounded(t), adminapi.BootstrapRequest{}, quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a witness founds a cluster: %v", err)
	}
	if out, err := w.Join(bounded(t), adminapi.JoinRequest{Peer: a.addr, Wait: true}, quiet); err != nil ||
		out.Role != adminapi.RoleWitness {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, n := range []*testNode{a, b, w} {
		eventually(t, "the roles on "+string(n.id), wantRoles(n, "a voter alive", "b voter alive", "w witness alive"))
		if _, err := n.Status(t.Context()); err != nil {
			t.Error(err)
		}
		if info, err := n.RingInfo(t.Context(), adminapi.RingQuery{JID: "20261121070000000000"}); err != nil ||
			len(info.Nodes) != 2 {
			t.Errorf("ring on %s: %+v, %v", n.id, info, err)
		}
	}
	w.mustListenOn(t, true)
	if _, err := os.Stat(filepath.Join(w.cfg.Cluster.PKIDir, "cluster.pem")); err == nil {
		t.Error("the witness has the private key")
	}
	if err := w.SaveSnapshot(t.Context(), &bytes.Buffer{}); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a witness saves a snapshot: %v", err)
	}
	if _, err := ofService(w.Daemon, (*service).newLedgers)(); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("verbs about minions on a witness: %v", err)
	}
	for _, r := range []health.Result{w.checkMember(t.Context()), w.tenure.Current().checkConsensus(t.Context()), w.checkEdges(t.Context()),
		w.checkMaster(t.Context())} {
		if r.Level != health.OK {
			t.Errorf("health of the witness: %+v", r)
		}
	}
	if _, err := b.Transfer(bounded(t), adminapi.TransferRequest{To: "a"}, quiet); err != nil {
		t.Fatal(err)
	}
	for _, dead := range []string{"a", "w", "b"} {
		all := map[string]**testNode{"a": &a, "b": &b, "w": &w}
		(*all[dead]).halt()
		left := b
		if dead == "b" {
			left = a
		}
		acceptKey(t, left, "while-"+dead+"-is-away", mustKey(t))
		dir := map[string]string{"a": dirs[0], "b": dirs[1], "w": dirs[2]}[dead]
		*all[dead] = startNode(t, dead, dir)
		eventually(t, dead+" is back", func() error {
			if m := (*all[dead]).tenure.Current(); m == nil || !m.Consensus.CaughtUp() {
				return fmt.Errorf("not yet")
			}
			return nil
		})
	}
	eventually(t, "a node with a master leads", func() error {
		if l := w.tenure.Current().Consensus.Leader(); l != "a" && l != "b" {
			return fmt.Errorf("%q leads", l)
		}
		return nil
	})
	// Gossip needs some seconds to see the one alive that has just come back, and until then its vote would be missed.
	eventually(t, "the witness is removed", func() error { return remove(t, a, "w", false) })
	eventually(t, "the witness knows", gone(w))
}

func TestOpen_LogDamaged(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	b := nodes[1]
	b.halt()
	path := filepath.Join(membership.RaftDir(b.cfg.Paths.StateDir), "raft.db")
	require.NoError(t, os.Truncate(path, 9000))
	b = startNode(t, "b", dirs[1])
	eventually(t, "b knows", gone(b))
	if st, err := b.Status(t.Context()); err != nil || !strings.Contains(st.Removed, "saltclusterctl remove b") {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := b.Join(bounded(t), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true}, quiet); err == nil ||
		!strings.Contains(err.Error(), "remove b") {
		t.Errorf("join with a vote: %v", err)
	}
	eventually(t, "b is seen dead", func() error {
		if nodes[0].tenure.Current().Alive("b") {
			return errors.New("alive")
		}
		return nil
	})
	require.NoError(t, remove(t, nodes[0], "b", false))
	eventually(t, "b is taken in again", func() error {
		_, err := b.Join(bounded(t), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true}, quiet)
		return err
	})
}
