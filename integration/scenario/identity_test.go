//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// The identity of a cluster of three versions is replaced under its minions. One of them is not told: it is named,
// works on until the end, and refuses the cluster then. The node that was asked is killed after the switch, another one
// is down meanwhile.
func TestIdentity(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-identity")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.Minions, spec.MasterSettings = append(slices.Clone(lab.Versions), lab.Versions[1]), clusterMasters
	c, err := l.NewCluster(ctx, spec)
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		labtest.Must(t, n.Daemon.Configure(lab.Settings{"rotate_window": "3s",
			"master_restart_command": []string{"touch", restartFile(n)}}))
	}
	labtest.Must(t, c.Up(ctx))
	for _, n := range c.Nodes { // asked for when they became members
		_ = os.Remove(restartFile(n))
	}
	restartWhenAsked(t, c)
	i := &identityLab{c: c, told: c.Minions[:3], untold: c.Minions[3]}
	for _, s := range []struct {
		name string
		test func(*testing.T, *identityLab)
	}{
		{"staged and given up", testIdentityAbort}, {"minions are told", testIdentityTold}, {"switched", testIdentitySwitch},
		{"finished", testIdentityFinish},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, i) }) {
			t.Log(l.Tails(60))
			t.FailNow()
		}
	}
}

type identityLab struct {
	c      *lab.Cluster
	told   []*lab.Minion
	untold *lab.Minion
	next   string // the new public key
}

func (i *identityLab) rotate(t *testing.T, n *lab.Node, args ...string) adminapi.Outcome {
	t.Helper()
	var out adminapi.Outcome
	labtest.Must(t, n.Daemon.CtlJSON(t.Context(), &out, append([]string{"rotate", "identity", "--yes"}, args...)...))
	return out
}

// refused runs a step that must be, and returns why.
func (i *identityLab) refused(t *testing.T, n *lab.Node, args ...string) string {
	t.Helper()
	res := ctl(t, n.Daemon, append([]string{"rotate", "identity", "--yes"}, args...)...)
	if res.Code != 6 {
		t.Errorf("rotate identity %v: exit code %d: %s", args, res.Code, res.Output())
	}
	return res.Stderr
}

func (i *identityLab) says(t *testing.T, n *lab.Node, want ...string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "rotate identity to say "+strings.Join(want, ", "),
		func(ctx context.Context) error {
			res, err := n.Daemon.Ctl(ctx, "rotate", "identity")
			if err != nil {
				return err
			}
			for _, w := range want {
				if !strings.Contains(res.Stdout, w) {
					return errors.New(res.Output())
				}
			}
			return nil
		}))
}

// pinLines is the new public key as the command in the first step has it.
func pinLines(t *testing.T, out adminapi.Outcome) string {
	t.Helper()
	for _, step := range out.Next {
		if _, rest, ok := strings.Cut(step, "args='"); ok {
			text, _, _ := strings.Cut(rest, "'")
			return text
		}
	}
	t.Fatalf("no step tells minions: %q", out.Next)
	return ""
}

func (i *identityLab) everybodyAnswers(t *testing.T) {
	t.Helper()
	for _, n := range i.c.Nodes {
		labtest.Must(t, i.c.Answering(t.Context(), n))
	}
}

func testIdentityAbort(t *testing.T, i *identityLab) {
	m1, m2 := i.c.Nodes[0], i.c.Nodes[1]
	i.refused(t, m1, "--switch")
	i.refused(t, m1, "--finish")
	must(t, m1.Daemon, "rotate", "identity", "--prepare", "--dry-run")
	before := pinLines(t, i.rotate(t, m1, "--prepare"))
	i.refused(t, m2, "--prepare")
	i.refused(t, m2, "--finish")
	i.rotate(t, m2, "--abort")
	i.says(t, m1, "no change of the identity is under way")
	out := i.rotate(t, m2, "--prepare")
	if lines := pinLines(t, out); lines == before {
		t.Error("what was given up is staged again")
	} else {
		var list []string
		labtest.Must(t, json.Unmarshal([]byte(lines), &list))
		i.next = strings.Join(list, "\n")
	}
	i.everybodyAnswers(t)
}

func testIdentityTold(t *testing.T, i *identityLab) {
	ctx, m1 := t.Context(), i.c.Nodes[0]
	list, err := json.Marshal(strings.Split(i.next, "\n"))
	labtest.Must(t, err)
	for k, m := range i.told { // from each of the masters
		got, err := i.c.Nodes[k].Master.Pub(ctx, m.ID, "file.write", filepath.Join(m.PKIDir(), "minion_master.pub"),
			"args="+string(list))
		labtest.Must(t, err)
		if text, _ := got[m.ID].(string); !strings.HasPrefix(text, "Wrote") {
			t.Fatalf("%s: %v", m.ID, got)
		}
	}
	must(t, m1.Daemon, "rotate", "aes", "--yes")
	i.says(t, m1, "3 minions have pinned it, 1 has not", "still pinned to the former key, 1: "+i.untold.ID)
	i.everybodyAnswers(t)
	if why := i.refused(t, m1, "--switch"); !strings.Contains(why, i.untold.ID) || strings.Contains(why, i.told[0].ID) {
		t.Errorf("who is not ready: %s", why)
	}
	check.Contains(t, i.refused(t, m1, "--abort"), i.told[0].ID, "who would be left behind")
}

func testIdentitySwitch(t *testing.T, i *identityLab) {
	ctx, m1, m2, m3 := t.Context(), i.c.Nodes[0], i.c.Nodes[1], i.c.Nodes[2]
	labtest.Must(t, m3.Daemon.Kill())
	i.rotate(t, m1, "--switch", "--force")
	labtest.Must(t, m1.Daemon.Kill())
	labtest.Must(t, m1.Daemon.Start(ctx))
	i.says(t, m2, "2 nodes have it, 1 has not", "m3 does not answer")
	labtest.Must(t, m3.Daemon.Start(ctx))
	i.says(t, m2, "3 nodes have it, 0 have not")
	for _, n := range i.c.Nodes {
		text, err := os.ReadFile(filepath.Join(n.Master.PKIDir(), "master.pub"))
		if err != nil || saltcrypt.CleanKey(string(text)) != saltcrypt.CleanKey(i.next) {
			t.Errorf("master.pub of %s is not the new one: %v", n.Name, err)
		}
		st, err := os.Stat(filepath.Join(n.Master.PKIDir(), "master.pem"))
		if err != nil || st.Mode().Perm() != 0o400 {
			t.Errorf("master.pem of %s: %v, %v", n.Name, st, err)
		}
	}
	labtest.Must(t, i.c.Whole(ctx, 2*time.Minute))
	i.everybodyAnswers(t) // who was not told, too
}

func testIdentityFinish(t *testing.T, i *identityLab) {
	ctx, m1 := t.Context(), i.c.Nodes[0]
	must(t, m1.Daemon, "rotate", "aes", "--yes")
	i.says(t, m1, "3 minions have pinned it, 1 has not", "still pinned to the former key, 1: "+i.untold.ID)
	if why := i.refused(t, m1, "--finish"); !strings.Contains(why, i.untold.ID) || strings.Contains(why, i.told[0].ID) {
		t.Errorf("who would be left behind: %s", why)
	}
	must(t, m1.Daemon, "rotate", "identity", "--yes", "--finish", "--force")
	i.says(t, m1, "no change of the identity is under way")
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the minion that was not told to refuse",
		func(context.Context) error {
			text, err := os.ReadFile(i.untold.LogPath())
			if err == nil && !strings.Contains(string(text), "The master key has changed") {
				err = errors.New("it has not")
			}
			return err
		}))
	named := false
	for _, n := range i.c.Nodes {
		text, err := os.ReadFile(n.Daemon.LogPath())
		labtest.Must(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "pinned another master key") {
				named = true
				check.Contains(t, line, i.untold.ID, n.Name)
			}
		}
	}
	if !named {
		t.Error("no node names who refuses")
	}
	var ids []string
	for _, m := range i.told {
		ids = append(ids, m.ID)
	}
	for k, n := range i.c.Nodes {
		labtest.Must(t, lab.Answering(ctx, n.Master, ids...))
		m := i.told[(k+1)%len(i.told)]
		// pillars are signed
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "states of "+m.ID, func(ctx context.Context) error {
			got, err := n.Master.Pub(ctx, m.ID, "state.apply", "demo")
			if err == nil {
				err = m.CheckApplied(got[m.ID])
			}
			if err != nil {
				return fmt.Errorf("from %s: %w", n.Name, err)
			}
			return nil
		}))
	}
	must(t, m1.Daemon, "status", "--check")
}
