//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// What the masters do with signatures. Only the second has anything below a syndic: what a syndic brings is not signed.
// Masters have no default for signing_algorithm, and without it their code raises at what is signed. Their key is of
// the largest common size.
var signedMasters = []lab.Settings{
	{"keysize": 4096, "signing_algorithm": "PKCS1v15-SHA1", "require_minion_sign_messages": true,
		"drop_messages_signature_fail": true},
	{"keysize": 4096, "signing_algorithm": "PKCS1v15-SHA1", "order_masters": true, "syndic_wait": 2, "timeout": 5,
		"gather_job_timeout": 15},
	{"keysize": 4096, "signing_algorithm": "PKCS1v15-SHA1", "require_minion_sign_messages": true,
		"drop_messages_signature_fail": true},
}

// Minions of three versions that sign, masters of three versions that want it or not, and a syndic; with keys of 4096
// and 3072 bits.
func TestSigned(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.Minions, spec.MinionSettings = lab.Versions, lab.Settings{"minion_sign_messages": true, "keysize": 3072}
	spec.DaemonSettings = metricsForAll
	c, err := l.NewCluster(ctx, spec)
	labtest.Must(t, err)
	for i, n := range c.Nodes {
		labtest.Must(t, countReactionsOn(n, signedMasters[i], "salt/job/*/ret/*"))
	}
	low := newLowMaster(t, c)
	labtest.Must(t, low.start(ctx))
	labtest.Must(t, c.Up(ctx))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"signed returns are taken", testSignedTaken},
		{"a forged return is dropped", testForged},
		{"a syndic", low.test},
		{"a syndic whose master is away", low.testMasterAway},
		{"a syndic whose key was deleted", low.testDeleted},
	} {
		t.Run(s.name, func(t *testing.T) { s.test(t, c) })
	}
}

func testSignedTaken(t *testing.T, c *lab.Cluster) {
	for _, n := range c.Nodes {
		keyHasBits(t, filepath.Join(n.Master.PKIDir(), "master.pub"), 4096)
	}
	for _, m := range c.Minions {
		keyHasBits(t, filepath.Join(m.PKIDir(), "minion.pub"), 3072)
	}
	for _, n := range c.Nodes {
		taken, python := outcomes(t, n, "taken"), outcomes(t, n, "needs_python")
		got, err := n.Master.Pub(t.Context(), "*", "test.arg", "ä", "two=2")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		if now := outcomes(t, n, "taken"); int(now-taken) < len(c.IDs()) {
			t.Errorf("%s took %v returns, of %d", n.Name, now-taken, len(c.IDs()))
		}
		if now := outcomes(t, n, "needs_python"); now != python {
			t.Errorf("%s left %v returns to Python", n.Name, now-python)
		}
	}
}

func keyHasBits(t *testing.T, path string, bits int) {
	t.Helper()
	text, err := os.ReadFile(path)
	labtest.Must(t, err)
	key, err := saltcrypt.ParsePublicKey(string(text))
	labtest.Must(t, err)
	if key.Bits() != bits {
		t.Errorf("%s has %d bits, not %d", path, key.Bits(), bits)
	}
}

// forge sends a return through Salt's own channel, signed with nobody's key or not at all, and prints the answer.
const forge = `
import sys, json, salt.config, salt.channel.client
opts = salt.config.minion_config(sys.argv[1] + "/minion")
opts["minion_sign_messages"] = False
opts["master_uri"] = "tcp://%s:4506" % opts["master"]
load = {"cmd": "_return", "id": opts["id"], "jid": sys.argv[2], "fun": "test.arg", "fun_args": [], "return": "forged", "success": True, "retcode": 0}
if sys.argv[3] == "forged":
    load["sig"] = bytes(range(256))
with salt.channel.client.ReqChannel.factory(opts) as channel:
    print(json.dumps(channel.send(load, timeout=30, tries=1)))
`

// A minion that is no target of a job says that it ran it. Masters that want signatures refuse what is not signed, and
// what is signed with another key; the one that does not care takes it, as a stock master does.
func testForged(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for i, n := range c.Nodes {
		target, liar := c.Minions[i], c.Minions[(i+1)%len(c.Minions)]
		res, err := n.Master.Run(ctx, "salt", "--async", target.ID, "test.arg", "true")
		labtest.Must(t, err)
		jid := jidPrinted.FindString(res.Stdout)
		want := []string{target.ID}
		for _, how := range []string{"unsigned", "forged"} {
			if i == 1 {
				want = []string{target.ID, liar.ID}
			}
			res, err := liar.Run(ctx, "python", "-c", forge, liar.ConfigDir, jid, how)
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
			var answer any
			labtest.Must(t, json.Unmarshal([]byte(res.Stdout), &answer))
			if refused := answer == false; refused == (i == 1) {
				t.Errorf("%s answered %v to what is %s", n.Name, answer, how)
			}
		}
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the job on "+n.Name, func(ctx context.Context) error {
			found, err := cached(ctx, n, jid)
			if err != nil {
				return err
			}
			return lab.AnsweredBy(found, want...)
		}))
	}
}

// lowMaster is a master with a syndic and a minion, below the cluster.
type lowMaster struct {
	*lab.Syndic
	minion *lab.Minion
}

func newLowMaster(t *testing.T, c *lab.Cluster) *lowMaster {
	t.Helper()
	h, err := c.Lab.Host(t.Context(), "low")
	labtest.Must(t, err)
	s, err := h.NewSyndic(lab.Versions[1], c.LB.Host().Addr, lab.Settings{"auto_accept": true})
	labtest.Must(t, err)
	m, err := h.NewMinion(lab.Versions[1], "below", h.Addr)
	labtest.Must(t, err)
	return &lowMaster{s, m}
}

func (m *lowMaster) start(ctx context.Context) error {
	for _, p := range []*lab.Process{m.Master.Process, m.minion.Process} {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// What is published above runs below, and what happens below is known above, once.
func (m *lowMaster) test(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	labtest.Must(t, m.Start(ctx))
	labtest.Must(t, c.Nodes[0].Master.AcceptKeys(ctx, time.Minute, m.ID))
	top := c.Nodes[1]
	all := append(c.IDs(), m.minion.ID)
	labtest.Must(t, lab.Answering(ctx, top.Master, all...))
	// A round in which all answer in time has no other returns, of find_job say.
	labtest.Must(t, lab.Eventually(ctx, time.Minute, top.Name+" to take all returns itself", func(ctx context.Context) error {
		taken, left := outcomes(t, top, "taken"), outcomes(t, top, "needs_python")
		got, err := top.Master.Pub(ctx, "*", "test.ping")
		if err == nil {
			err = lab.AnsweredBy(got, all...)
		}
		taken, left = outcomes(t, top, "taken")-taken, outcomes(t, top, "needs_python")-left
		if err == nil && (int(taken) < len(all) || left > 0) {
			err = fmt.Errorf("%v returns of %d, and %v left to Python", taken, len(all), left)
		}
		return err
	}))
	m.testEvents(t, c)
}

// testEvents: an event of a minion below fires on one master above.
func (m *lowMaster) testEvents(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	_, err := m.minion.Call(ctx, "event.send", "lab/count/below")
	labtest.Must(t, err)
	tag, times := "syndic/"+m.ID+"/lab/count/below", 0
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the event from below", func(context.Context) error {
		all, err := counted(c)
		if err != nil {
			return err
		}
		times = 0
		for _, runs := range all {
			times += runs[tag]
		}
		if times == 0 {
			return fmt.Errorf("on no master")
		}
		return nil
	}))
	if times != 1 {
		t.Errorf("its reactor ran %d times", times)
	}
}

// testMasterAway: the master above is killed while a job runs below; it has the return when it is back, and before. Its
// reactor hears of every return once when it is there again, and not before it can. What minions fire meanwhile a
// reactor hears once, too: another master's.
func (m *lowMaster) testMasterAway(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	top := c.Nodes[1]
	began := filepath.Join(m.minion.StateDir(), "began")
	labtest.Must(t, os.MkdirAll(filepath.Dir(began), 0o755))
	jid := async(t, top, "cmd.run", "touch {{grains.lab_dir}}/began; sleep 5; echo done", "template=jinja")
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the job to run below", func(context.Context) error {
		_, err := os.Stat(began)
		return err
	}))
	labtest.Must(t, top.Master.Kill())
	labtest.Must(t, lab.Eventually(ctx, time.Minute, jid+" in the job cache", func(ctx context.Context) error {
		found, err := cached(ctx, top, jid)
		if err != nil {
			return err
		}
		if text, _ := found[m.minion.ID].(string); !strings.Contains(text, "done") {
			return fmt.Errorf("found %v", found)
		}
		return lab.AnsweredBy(found, append(c.IDs(), m.minion.ID)...)
	}))
	const meanwhile = "lab/count/meanwhile"
	got, err := c.Nodes[0].Master.Pub(ctx, "*", "event.send", meanwhile)
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	was := syscall.Umask(0o027) // is the master's from now on
	err = top.Master.Start(ctx)
	syscall.Umask(was)
	labtest.Must(t, err)
	labtest.Must(t, top.Master.WaitReady(ctx, 3*time.Minute))
	drained(t, top, time.Minute)
	last := async(t, top, "test.ping") // whose events come after all others
	var runs map[string]map[string]int
	reacted := func(jid string) (times []int) {
		for _, id := range append(c.IDs(), m.minion.ID) {
			times = append(times, runs[top.Name]["salt/job/"+jid+"/ret/"+id])
		}
		return times
	}
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the reactor of "+top.Name, func(context.Context) (err error) {
		if runs, err = counted(c); err != nil {
			return err
		}
		if n := reacted(last); slices.Contains(n, 0) {
			return fmt.Errorf("it ran %v times for the last job, %v times for the one while its master was away", n,
				reacted(jid))
		}
		return nil
	}))
	if n := reacted(jid); slices.Min(n) != 1 || slices.Max(n) != 1 {
		t.Errorf("the reactor of %s ran %v times for the returns while its master was away", top.Name, n)
	}
	if n := sum(runs, meanwhile); n != len(c.IDs()) {
		t.Errorf("%d events were fired while the master of %s was away, and reactors ran %d times", len(c.IDs()), top.Name, n)
	}
	for _, n := range c.Nodes { // each writes as its own master would
		labtest.Must(t, lab.Eventually(ctx, time.Minute, last+" on "+n.Name, func(ctx context.Context) error {
			found, err := cached(ctx, n, last)
			if err == nil {
				err = lab.AnsweredBy(found, append(c.IDs(), m.minion.ID)...)
			}
			return err
		}))
		dir, file := fs.FileMode(0o755), fs.FileMode(0o644)
		if n == top {
			dir, file = 0o750, 0o640
		}
		job := jobDir(t, n, last)
		for path, want := range map[string]fs.FileMode{"": dir, c.IDs()[0]: dir, filepath.Join(c.IDs()[0], "return.p"): file,
			".load.p": file, "jid": file} {
			info, err := os.Stat(filepath.Join(job, path))
			labtest.Must(t, err)
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s: %q of a job has the mode %v, not %v", n.Name, path, got, want)
			}
		}
	}
}

// testDeleted: what happens below a syndic whose key was deleted while a job ran there is heard above no more.
func (m *lowMaster) testDeleted(t *testing.T, c *lab.Cluster) {
	ctx, top := t.Context(), c.Nodes[1]
	const tag = "lab/count/deleted"
	end := filepath.Join(m.minion.StateDir(), "end")
	began := filepath.Join(m.minion.StateDir(), "begun")
	jid := asyncOn(t, top, []string{m.minion.ID}, "cmd.run",
		fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.1; done", began, end), inShell)
	eventually(t, time.Minute, "the job to run below", func() bool { _, err := os.Stat(began); return err == nil })
	deleted(t, c.Nodes[0], m.ID)
	labtest.Must(t, os.WriteFile(end, nil, 0o644))
	_, err := m.minion.Call(ctx, "event.send", tag)
	labtest.Must(t, err)
	keyIs(t, c, m.ID, "minions_pre", time.Minute) // it signs in anew
	// What minions fire now, and return, comes after whatever the syndic may have sent.
	got, err := c.Nodes[0].Master.Pub(ctx, "*", "event.send", tag)
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	inCache(t, c, top, async(t, top, "test.ping"), time.Minute)
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the reactors", func(context.Context) error {
		runs, err := counted(c)
		if n := sum(runs, tag); err == nil && n < len(c.IDs()) {
			err = fmt.Errorf("they ran %d times", n)
		}
		return err
	}))
	runs, err := counted(c)
	labtest.Must(t, err)
	if n := sum(runs, "syndic/"+m.ID+"/"+tag); n > 0 {
		t.Errorf("the event from below fired %d times", n)
	}
	found, err := cached(ctx, top, jid)
	labtest.Must(t, err)
	if len(found) > 0 {
		t.Errorf("the job cache has returns from below: %v", found)
	}
}
