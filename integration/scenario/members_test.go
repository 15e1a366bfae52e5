//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// membersLab is two salt-masters and two witnesses, of which one is in reserve: at most three vote.
type membersLab struct {
	*lab.Cluster
	witness []*lab.Daemon
}

// Who belongs to the cluster changes while minions work: nobody is restarted but who is meant.
func TestMembers(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{lab.Versions[0], lab.Versions[2]}, Minions: []string{lab.Versions[0], lab.Versions[2]},
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15},
		DaemonSettings: lab.Settings{"cluster_max_voters": 3, "cluster_voter_timeout": "5s", "log_level": "debug"},
	})
	labtest.Must(t, err)
	m := &membersLab{Cluster: c}
	for _, name := range []string{"w1", "w2"} {
		h, err := l.Host(t.Context(), name)
		labtest.Must(t, err)
		w, err := h.NewWitness(lab.Settings{"cluster_max_voters": 3, "cluster_voter_timeout": "5s", "log_level": "debug"})
		labtest.Must(t, err)
		m.witness = append(m.witness, w)
	}
	labtest.Must(t, c.Up(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T, *membersLab)
	}{
		{"a witness for two", testWitness},
		{"a reserve takes the vote of the dead", testReserve},
		{"a token takes in one node", testToken},
		{"secrets are rotated", testRotate},
		{"no secret shows", testSecretsDoNotShow},
		{"a crash shows no secret", testCrash},
		{"who is removed is cut off", testRemovedIsCut},
		{"a node is removed and joins again", testRemove},
		{"the majority is gone", testRecover},
		{"a snapshot on an empty machine", testSnapshot},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, m) }) {
			t.Log(l.Tails(40))
			t.FailNow() // what follows would only repeat the failure
		}
	}
}

func ctl(t *testing.T, d *lab.Daemon, args ...string) lab.Result {
	t.Helper()
	res, err := d.Ctl(t.Context(), args...)
	labtest.Must(t, err)
	return res
}

func must(t *testing.T, d *lab.Daemon, args ...string) lab.Result {
	t.Helper()
	res := ctl(t, d, args...)
	labtest.Must(t, res.Err())
	return res
}

// standing waits until members on d reads like "m1 voter alive".
func standing(t *testing.T, d *lab.Daemon, want ...string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "members as "+d.Host().Name+" sees them",
		func(ctx context.Context) error {
			all, err := d.Members(ctx)
			if err != nil {
				return err
			}
			var got []string
			for _, mem := range all.Members {
				got = append(got, fmt.Sprintf("%s %s %s", mem.ID, mem.Role, mem.State))
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%q, not %q", got, want)
			}
			return nil
		}))
}

// decides proves that there is a majority: a leader answers a proposal.
func decides(t *testing.T, d *lab.Daemon) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "a decision on "+d.Host().Name,
		func(ctx context.Context) error {
			res, err := d.Ctl(ctx, "status")
			if err != nil {
				return err
			}
			if !strings.Contains(res.Stdout, "leader ") || strings.Contains(res.Stdout, ": lost") {
				return fmt.Errorf("no quorum:\n%s", res.Stdout)
			}
			return nil
		}))
}

// serves waits until all minions answer the node's master.
func (m *membersLab) serves(t *testing.T, n *lab.Node) {
	t.Helper()
	labtest.Must(t, m.Answering(t.Context(), n))
}

func testWitness(t *testing.T, m *membersLab) {
	ctx, w := t.Context(), m.witness[0]
	m1, m2 := m.Nodes[0], m.Nodes[1]
	labtest.Must(t, w.Start(ctx))
	labtest.Must(t, w.WaitReady(ctx, time.Minute))
	must(t, w, "join", m1.Addr)
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w1 witness alive")
	if _, err := os.Stat(filepath.Join(w.StateDir, "pki", "cluster.pem")); err == nil {
		t.Error("the witness has the cluster's private key")
	}
	if err := w.Host().Accepts(ctx, w.Host().Addr+":4505"); err == nil {
		t.Error("the witness listens for minions")
	}
	taken, err := w.Host().Listen(ctx, "tcp", w.Host().Addr+":4999")
	labtest.Must(t, err)
	defer taken.Close()
	upgradeRefused(t, w, "agent_check_listen: '"+taken.Addr().String()+"'",
		"agent_check_listen: listen tcp "+taken.Addr().String())
	must(t, w, "upgrade")
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w1 witness alive")
	must(t, m2.Daemon, "transfer", "m2")
	for _, dead := range []*lab.Daemon{m2.Daemon, w} {
		labtest.Must(t, dead.Kill())
		decides(t, m1.Daemon)
		m.serves(t, m1)
		labtest.Must(t, dead.Start(ctx))
		standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w1 witness alive")
	}
}

func testReserve(t *testing.T, m *membersLab) {
	ctx, w1, w2 := t.Context(), m.witness[0], m.witness[1]
	m1 := m.Nodes[0].Daemon
	labtest.Must(t, w2.Start(ctx))
	labtest.Must(t, w2.WaitReady(ctx, time.Minute))
	must(t, w2, "join", m.Nodes[0].Addr, "--wait=false")
	voters := func(want ...string) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, time.Minute, fmt.Sprint("voters ", want), func(ctx context.Context) error {
			var st adminapi.Status
			if err := m1.CtlJSON(ctx, &st, "status"); err != nil {
				return err
			}
			if got := st.Cluster.VoterIDs; !slices.Equal(got, want) {
				return fmt.Errorf("%q", got)
			}
			return nil
		}))
	}
	voters("m1", "m2", "w1")
	labtest.Must(t, w1.Kill())
	voters("m1", "m2", "w2")
	labtest.Must(t, w1.Start(ctx))
	must(t, m1, "remove", "--yes", "w1")
	labtest.Must(t, w1.Stop(ctx))
	standing(t, m1, "m1 voter alive", "m2 voter alive", "w2 witness alive")
}

func testRemove(t *testing.T, m *membersLab) {
	ctx, m1, m2 := t.Context(), m.Nodes[0], m.Nodes[1]
	ping := pinging(ctx, m1, m.IDs())
	must(t, m1.Daemon, "remove", "--yes", "m2")
	standing(t, m1.Daemon, "m1 voter alive", "w2 witness alive")
	removed(t, m2.Daemon, "was removed from the cluster")
	// A publication between the end of a minion's connection to m2 and its next one, to m1, reaches it late; the command
	// line may have given up by then.
	rounds, failures := ping()
	t.Logf("%d rounds of test.ping while m2 was removed, %d incomplete", rounds, len(failures))
	m.serves(t, m1)
	labtest.Must(t, m2.Daemon.Restart(ctx))
	removed(t, m2.Daemon, "was removed from the cluster") // also after a restart, with nobody's help
	must(t, m2.Daemon, "join", m1.Addr)
	m.serves(t, m2)
}

// removed waits until a node says in its status that it is no member.
func removed(t *testing.T, d *lab.Daemon, why string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, d.Host().Name+" to know that it is no member",
		func(ctx context.Context) error {
			res, err := d.Ctl(ctx, "status")
			if err != nil {
				return err
			}
			if !strings.Contains(res.Stdout, why) || !strings.Contains(res.Stdout, "saltclusterctl join PEER") {
				return fmt.Errorf("status:\n%s", res.Stdout)
			}
			return nil
		}))
	if err := d.Host().Accepts(t.Context(), d.Host().Addr+":4505"); err == nil {
		t.Error("it still listens for minions")
	}
}

func testRecover(t *testing.T, m *membersLab) {
	ctx, m1, m2, w := t.Context(), m.Nodes[0], m.Nodes[1], m.witness[1]
	if res := ctl(t, m1.Daemon, "recover", "--force-new-cluster", "--yes"); res.Code != 6 ||
		!strings.Contains(res.Stderr, "there is nothing to recover") {
		t.Errorf("while all is well: %d, %s", res.Code, res.Stderr)
	}
	labtest.Must(t, m2.Daemon.Kill())
	labtest.Must(t, w.Kill())
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "m1 to say that the quorum is lost", func(ctx context.Context) error {
		res, err := m1.Daemon.Ctl(ctx, "status")
		if err == nil && !strings.Contains(res.Stdout, "recover --force-new-cluster") {
			err = fmt.Errorf("status:\n%s", res.Stdout)
		}
		return err
	}))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "m1 to see that the others are dead",
		func(ctx context.Context) error {
			res, err := m1.Daemon.Ctl(ctx, "recover", "--dry-run")
			if err == nil {
				err = res.Err()
			}
			return err
		}))
	m.serves(t, m1)
	if res := ctl(t, m1.Daemon, "remove", "--yes", "w2"); res.Code != 4 ||
		!strings.Contains(res.Stderr, "recover --force-new-cluster") {
		t.Errorf("remove without a quorum: %d, %s", res.Code, res.Stderr)
	}
	res := must(t, m1.Daemon, "recover", "--force-new-cluster", "--yes")
	if !strings.Contains(res.Stderr, "last contact with a majority was") ||
		!strings.Contains(res.Stdout, "saltclusterctl join "+m1.Addr) {
		t.Errorf("recover said\n%s\n%s", res.Stderr, res.Stdout)
	}
	standing(t, m1.Daemon, "m1 voter alive")
	m.serves(t, m1)
	labtest.Must(t, m2.Daemon.Start(ctx))
	labtest.Must(t, w.Start(ctx))
	removed(t, m2.Daemon, "recovered without this node")
	must(t, m2.Daemon, "join", m1.Addr)
	m.serves(t, m2)
}

func testSnapshot(t *testing.T, m *membersLab) {
	ctx, m1, m2 := t.Context(), m.Nodes[0], m.Nodes[1]
	dir := t.TempDir()
	file, pass := filepath.Join(dir, "cluster.snapshot"), filepath.Join(dir, "passphrase")
	labtest.Must(t, os.WriteFile(pass, []byte("correct horse battery staple\n"), 0o600))
	must(t, m1.Daemon, "snapshot", "save", file, "--passphrase-file", pass)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if res := must(t, m1.Daemon, "snapshot", "inspect", file, "--passphrase-file", pass); !strings.Contains(res.Stdout,
		"2 accepted") {
		t.Errorf("inspect:\n%s", res.Stdout)
	}
	marks := logSizes(t, m.Cluster)
	for _, n := range m.Nodes { // a fire
		labtest.Must(t, n.Daemon.Kill())
		labtest.Must(t, n.Master.Kill())
	}
	for _, d := range []string{m2.Daemon.StateDir, m2.Master.PKIDir(), m2.Master.CacheDir()} {
		labtest.Must(t, os.RemoveAll(d))
	}
	_ = os.Remove(m2.Daemon.Socket) // or the lab takes it for a daemon that is up
	labtest.Must(t, os.MkdirAll(m2.Daemon.StateDir, 0o750))
	labtest.Must(t, os.MkdirAll(m2.Master.PKIDir(), 0o700))
	labtest.Must(t, m2.Daemon.Start(ctx))
	labtest.Must(t, m2.Daemon.WaitReady(ctx, time.Minute))
	must(t, m2.Daemon, "snapshot", "restore", "--yes", file, "--passphrase-file", pass)
	labtest.Must(t, m2.Master.Start(ctx))
	labtest.Must(t, m2.Master.WaitReady(ctx, 3*time.Minute))
	m.serves(t, m2)
	for _, min := range m.Minions {
		for _, sign := range []string{"master key has changed", "public key in this minion", "Minion failed to auth",
			"was rejected"} {
			if strings.Contains(since(t, min, marks[min.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", min.ID, sign)
			}
		}
	}
}
