//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// A saltclusterd is replaced in place, over and over, under stock masters and minions.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	daemons := maps.Clone(metricsForAll)
	daemons["late_jobs"] = false // subscribers of libzmq do not drop what they have had
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]}, Minions: lab.Versions,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15}, DaemonSettings: daemons,
		// A job is a thread then and not a process: two cores carry several a second.
		MinionSettings: lab.Settings{"multiprocessing": false},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"five upgrades under load", testUpgrades},
		{"the new programs do what the old ones did", testSuccessors},
		{"a state runs meanwhile", testUpgradeDuringState},
		{"new programs that fail", testBadUpgrades},
		{"a program of another state version", testForeignState},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, c.Whole(t.Context(), time.Minute))
	}
}

// While both nodes' daemons are replaced, all minions answer all of the jobs that both masters publish every second,
// nobody's connection ends, and 500 subscribers of libzmq get exactly what the masters publish.
func testUpgrades(t *testing.T, c *lab.Cluster) {
	marks, before := logSizes(t, c), connections(t, c.LB.Host(), c.Minions[0].Host())
	crowds := []*pyCrowd{
		newPyCrowd(t, c.Minions[0].Host(), "crowd", c.Nodes[0].Addr, 500),
		newPyCrowd(t, c.Nodes[0].Host, "control1", c.Nodes[0].Master.Addr, 1),
		newPyCrowd(t, c.Nodes[1].Host, "control2", c.Nodes[1].Master.Addr, 1),
	}
	var jobs []*publisher
	for _, n := range c.Nodes {
		jobs = append(jobs, newPublisher(t, n))
	}
	for i := range 5 {
		upgradeDaemon(t, c.Nodes[0])
		if i%2 == 0 {
			upgradeDaemon(t, c.Nodes[1])
		}
	}
	for _, p := range jobs {
		p.judge(t, c.IDs())
	}
	for _, m := range c.Minions {
		for _, sign := range []string{"Authentication", "re-auth", "SaltReqTimeoutError", "Minion failed to auth",
			"reconnect"} {
			if strings.Contains(since(t, m, marks[m.ID]), sign) {
				t.Errorf("%s noticed: its log has %q", m.ID, sign)
			}
		}
	}
	after := connections(t, c.LB.Host(), c.Minions[0].Host())
	for _, conn := range before {
		if !slices.Contains(after, conn) {
			t.Errorf("the connection %s has ended", conn)
		}
	}
	judgeCrowds(t, crowds)
}

// What saltclusterd does itself its successor does, too, and leaves nothing of it to Python.
func testSuccessors(t *testing.T, c *lab.Cluster) {
	fired, mined, taken, python, files := firedEvents(t, c), answeredMines(t, c), 0., 0., 0.
	for _, n := range c.Nodes {
		taken -= outcomes(t, n, "taken")
		python -= outcomes(t, n, "needs_python")
		files -= servedHere(t, n)
	}
	for _, m := range c.Minions {
		for _, call := range [][]string{
			{"event.send", "lab/successor/" + m.ID}, {"mine.send", "test.ping"}, {"mine.get", m.ID, "test.ping"},
			{"cp.hash_file", "salt://demo/init.sls"},
		} {
			_, err := m.Call(t.Context(), call[0], call[1:]...)
			labtest.Must(t, err)
		}
	}
	for _, n := range c.Nodes {
		taken += outcomes(t, n, "taken")
		python += outcomes(t, n, "needs_python")
		files += servedHere(t, n)
	}
	now, least := answeredMines(t, c), float64(len(c.Minions))
	for what, n := range map[string]float64{
		"events fired": firedEvents(t, c) - fired, "returns taken": taken, "files": files,
		"_mine": now["_mine"] - mined["_mine"], "_mine_get": now["_mine_get"] - mined["_mine_get"],
	} {
		if n < least {
			t.Errorf("%s without the masters' Python: %v, of %v at least", what, n, least)
		}
	}
	if python != 0 {
		t.Errorf("%v returns were left to Python", python)
	}
}

// upgradeDaemon replaces a node's daemon by the same program, and sees that it was.
func upgradeDaemon(t *testing.T, n *lab.Node, args ...string) {
	t.Helper()
	old := n.Daemon.PID()
	res, err := n.Daemon.Ctl(t.Context(), append([]string{"upgrade"}, args...)...)
	labtest.Must(t, err)
	if err := res.Err(); err != nil {
		t.Fatalf("%v\n%s", err, n.Daemon.Tail(40))
	}
	t.Logf("%s: %s (%s)", n.Name, strings.TrimSpace(res.Stdout), res.Took.Round(time.Millisecond))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the old process of "+n.Name+" to end",
		func(context.Context) error {
			if n.Daemon.PID() == old {
				return fmt.Errorf("%d is still the main process", old)
			}
			if err := syscall.Kill(old, 0); err == nil {
				return fmt.Errorf("%d still runs", old)
			}
			return nil
		}))
}

// connections lists the established ones to 4505, as /proc/net/tcp names them.
func connections(t *testing.T, hosts ...*lab.Host) (all []string) {
	t.Helper()
	for _, h := range hosts {
		res, err := h.Exec(t.Context(), nil, "/bin/cat", "/proc/net/tcp")
		labtest.Must(t, err)
		for line := range strings.Lines(res.Stdout) {
			const port4505, established = ":1199", "01"
			if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[2], port4505) && f[3] == established {
				all = append(all, h.Name+" "+f[1]+" "+f[2])
			}
		}
	}
	return all
}

// crowdScript subscribes count sockets to a publisher and, when it is told to end, writes how many messages each got
// and a hash over them.
const crowdScript = `
import hashlib, json, signal, sys, zmq
addr, count, ready, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
ctx = zmq.Context()
ctx.set(zmq.MAX_SOCKETS, 4096)
poller, socks, counts, hashes, ends = zmq.Poller(), [], [], [], 0
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
for i in range(count):
    s = ctx.socket(zmq.SUB)
    s.setsockopt(zmq.SUBSCRIBE, b"")
    s.setsockopt(zmq.RCVHWM, 0)
    if i % 10 == 0:
        s.setsockopt(zmq.HEARTBEAT_IVL, 1000)
    s.connect("tcp://%s:4505" % addr)
    poller.register(s, zmq.POLLIN)
    socks.append(s); counts.append(0); hashes.append(hashlib.sha256())
index = {s: i for i, s in enumerate(socks)}
open(ready, "w").close()
while not over:
    for s, _ in poller.poll(200):
        i = index[s]
        while True:
            try:
                parts = s.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            counts[i] += 1
            hashes[i].update(parts[-1])
with open(out, "w") as f:
    json.dump({"counts": counts, "hashes": [h.hexdigest() for h in hashes]}, f)
`

type pyCrowd struct {
	*lab.Process
	out    string
	Counts []int
	Hashes []string
}

func newPyCrowd(t *testing.T, h *lab.Host, name, addr string, count int) *pyCrowd {
	t.Helper()
	dir := filepath.Join(h.Dir(), name)
	labtest.Must(t, os.MkdirAll(dir, 0o755))
	script, ready := filepath.Join(dir, "crowd.py"), filepath.Join(dir, "ready")
	labtest.Must(t, os.WriteFile(script, []byte(crowdScript), 0o644))
	c := &pyCrowd{out: filepath.Join(dir, "out.json")}
	c.Process = h.NewProcess(lab.Spec{
		Name: name, Argv: []string{
			filepath.Join(lab.DefaultVenvs(), lab.Versions[2], "bin/python"), script, addr, fmt.Sprint(count), ready, c.out,
		},
		Ready: func(context.Context) error { _, err := os.Stat(ready); return err },
	})
	labtest.Must(t, c.Start(t.Context()))
	t.Cleanup(func() { _ = c.Kill() })
	labtest.Must(t, c.WaitReady(t.Context(), time.Minute))
	// Subscribed is who has got something; the first publications may pass some by, so nothing counts before.
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, name+" to be connected", func(context.Context) error {
		if n := len(connectionsTo(t, h, addr)); n < count {
			return fmt.Errorf("%d of %d", n, count)
		}
		return nil
	}))
	return c
}

func connectionsTo(t *testing.T, h *lab.Host, addr string) (to []string) {
	a := net.ParseIP(addr).To4()
	for _, conn := range connections(t, h) {
		if strings.HasSuffix(conn, fmt.Sprintf(" %02X%02X%02X%02X:1199", a[3], a[2], a[1], a[0])) {
			to = append(to, conn)
		}
	}
	return to
}

// judgeCrowds: everybody behind the node got the same, and as much as the masters published.
func judgeCrowds(t *testing.T, crowds []*pyCrowd) {
	t.Helper()
	time.Sleep(time.Second) // what was published last is on its way
	for _, c := range crowds {
		labtest.Must(t, c.Stop(t.Context()))
		raw, err := os.ReadFile(c.out)
		labtest.Must(t, err)
		labtest.Must(t, json.Unmarshal(raw, c))
	}
	published := crowds[1].Counts[0] + crowds[2].Counts[0]
	wrong, different := 0, map[string]int{}
	for i, n := range crowds[0].Counts {
		different[crowds[0].Hashes[i]]++
		if n != published {
			wrong++
		}
	}
	t.Logf("%d publications, %d subscribers", published, len(crowds[0].Counts))
	if wrong > 0 || len(different) > 1 {
		t.Errorf("%d of %d subscribers got another number than %d, in %d different orders", wrong, len(crowds[0].Counts),
			published, len(different))
	}
}

// publishScript publishes a job to all every second through Salt's own client; when it is told to end it waits for
// stragglers and writes who answered which job, as the job cache has it.
const publishScript = `
import json, os, signal, sys, time
import salt.client
ready, out = sys.argv[1], sys.argv[2]
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
local = salt.client.LocalClient(os.path.join(os.environ["SALT_CONFIG_DIR"], "master"))
jobs = {}
while not over:
    began = time.time()
    jid = local.cmd_async("*", "test.arg", [len(jobs)])
    jobs[jid] = len(jobs)
    if len(jobs) == 3:
        open(ready, "w").close()
    time.sleep(max(0, 1 - (time.time() - began)))
end = time.time() + 60
while time.time() < end:
    answers = {jid: sorted(m for m, r in local.get_cache_returns(jid).items() if r["ret"]["args"] == [n]) for jid, n in jobs.items()}
    if len({len(a) for a in answers.values()}) == 1:
        break
    time.sleep(0.5)
with open(out, "w") as f:
    json.dump(answers, f)
`

// publisher is a master's client that publishes one job after the other.
type publisher struct {
	*lab.Process
	out string
}

func newPublisher(t *testing.T, n *lab.Node) *publisher {
	t.Helper()
	script, ready := filepath.Join(n.Dir(), "publish.py"), filepath.Join(n.Dir(), "publishing")
	labtest.Must(t, os.WriteFile(script, []byte(publishScript), 0o644))
	p := &publisher{out: filepath.Join(n.Dir(), "answers.json")}
	p.Process = n.NewProcess(lab.Spec{
		Name: "publisher", Env: n.Master.Env(), Grace: 90 * time.Second,
		Argv:  []string{filepath.Join(lab.DefaultVenvs(), n.Master.Version, "bin/python"), script, ready, p.out},
		Ready: func(context.Context) error { _, err := os.Stat(ready); return err },
	})
	labtest.Must(t, p.Start(t.Context()))
	t.Cleanup(func() { _ = p.Kill() })
	labtest.Must(t, p.WaitReady(t.Context(), time.Minute))
	return p
}

// judge: every job was answered by everybody.
func (p *publisher) judge(t *testing.T, ids []string) {
	t.Helper()
	labtest.Must(t, p.Stop(t.Context()))
	raw, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Tail(20))
	}
	var answers map[string][]string
	labtest.Must(t, json.Unmarshal(raw, &answers))
	t.Logf("%d jobs from %s", len(answers), p.Process.Host().Name)
	for jid, who := range answers {
		if want := slices.Sorted(slices.Values(ids)); !slices.Equal(who, want) {
			t.Errorf("job %s was answered by %v", jid, who)
		}
	}
}

// A state that runs while the daemon is replaced returns to who waits for it.
func testUpgradeDuringState(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	type outcome struct {
		got map[string]any
		err error
	}
	done := make(chan outcome, 1)
	began := filepath.Join(c.Minions[0].StateDir(), "began")
	labtest.Must(t, os.MkdirAll(filepath.Dir(began), 0o755))
	go func() {
		got, err := c.Nodes[0].Master.Pub(ctx, "*", "state.single", "cmd.run",
			"name=touch {{grains.lab_dir}}/began; sleep 4", "template=jinja")
		done <- outcome{got, err}
	}()
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the state to begin", func(context.Context) error {
		select {
		case o := <-done:
			done <- o
			return nil
		default:
		}
		res, err := c.Nodes[0].Master.Run(ctx, "salt-run", "--out=json", "jobs.active")
		if err == nil && !strings.Contains(res.Stdout, "state.single") {
			err = fmt.Errorf("no active job")
		}
		return err
	}))
	for _, n := range c.Nodes {
		upgradeDaemon(t, n)
	}
	o := <-done
	labtest.Must(t, o.err)
	labtest.Must(t, lab.AnsweredBy(o.got, c.IDs()...))
}

// New programs that die at the start, that panic after taking over, that hang, and a configuration that is wrong: the
// running process goes on, nobody notices, and the next good one takes over.
func testBadUpgrades(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	n := c.Nodes[0]
	marks, before := logSizes(t, c), connections(t, c.LB.Host(), c.Minions[0].Host())
	stop := pinging(ctx, n, c.IDs())
	pid := n.Daemon.PID()
	for fault, reason := range map[string]string{
		"dies": "has ended", "panics": "has ended", "hangs": "sent nothing", "refuses": "it does not like this",
	} {
		res, err := n.Daemon.Ctl(ctx, "upgrade", "--binary", badProgram(t, n, fault))
		labtest.Must(t, err)
		if res.Code == 0 || !strings.Contains(res.Stderr, reason) || n.Daemon.PID() != pid {
			t.Errorf("%s: exit code %d, process %d instead of %d: %s", fault, res.Code, n.Daemon.PID(), pid, res.Output())
		}
	}
	upgradeRefused(t, n.Daemon, "no_such_option: 1", "no_such_option")
	upgradeRefused(t, n.Daemon, listenOnTaken(n), "bind: address already in use")
	labtest.Must(t, n.Daemon.Signal(syscall.SIGHUP)) // a good one, as systemctl reload asks for it
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "another process after SIGHUP", func(context.Context) error {
		if n.Daemon.PID() == pid {
			return fmt.Errorf("still %d", pid)
		}
		return nil
	}))
	rounds, failures := stop()
	if len(failures) > 0 {
		t.Errorf("%d of %d rounds failed:\n%s", len(failures), rounds, strings.Join(failures, "\n"))
	}
	for _, m := range c.Minions {
		if strings.Contains(since(t, m, marks[m.ID]), "auth") {
			t.Errorf("%s noticed", m.ID)
		}
	}
	after := connections(t, c.LB.Host(), c.Minions[0].Host())
	for _, conn := range before {
		if !slices.Contains(after, conn) {
			t.Errorf("the connection %s has ended", conn)
		}
	}
}

// listenOnTaken is a line for the configuration by which a node listens where its master does.
func listenOnTaken(n *lab.Node) string {
	return "agent_check_listen: '" + net.JoinHostPort(n.Master.Addr, "4506") + "'"
}

// upgradeRefused puts a line into the configuration for a while, with which no process can take this one's place.
func upgradeRefused(t *testing.T, d *lab.Daemon, line, reason string, args ...string) {
	t.Helper()
	good, err := os.ReadFile(d.ConfigPath)
	labtest.Must(t, err)
	pid := d.PID()
	labtest.Must(t, os.WriteFile(d.ConfigPath, fmt.Appendf(slices.Clip(good), "\n%s\n", line), 0o600))
	res, err := d.Ctl(t.Context(), append([]string{"upgrade"}, args...)...)
	labtest.Must(t, err)
	labtest.Must(t, os.WriteFile(d.ConfigPath, good, 0o600))
	if res.Code == 0 || !strings.Contains(res.Stderr, reason) || d.PID() != pid {
		t.Errorf("%s: exit code %d: %s", line, res.Code, res.Output())
	}
	must(t, d, "members") // it answers
}

// A program that does not know this one's state is started in its place after a drain, unless it would not come up.
func testForeignState(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	n := c.Nodes[0]
	foreign := badProgram(t, n, "foreign")
	upgradeRefused(t, n.Daemon, listenOnTaken(n), "bind: address already in use", "--wait=false", "--binary", foreign)
	res, err := n.Daemon.Ctl(ctx, "upgrade", "--wait=false", "--binary", foreign)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	if !strings.Contains(res.Stdout, "its state has version") {
		t.Errorf("no reason: %s", res.Output())
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the other program to start", func(context.Context) error {
		if !n.Daemon.Logged("restarting with another program") {
			return fmt.Errorf("not yet")
		}
		return nil
	}))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	labtest.Must(t, c.Answering(ctx, n))
}
