//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// adopter is a stock master with minions, as a site has it, and the saltclusterd that comes to it.
type adopter struct {
	t    *testing.T
	bare *lab.Bare
	node *lab.Node
	bus  *listeners
	// reaches, when not nil, says whether minions are served as they shall be; else exactly those of bare are.
	reaches func(context.Context) error
	// deaf: between setup and its restart the master listens where its own tools do not look for it any more.
	deaf bool
}

func (a *adopter) reached(ctx context.Context) error {
	if a.deaf {
		return nil
	}
	if a.reaches != nil {
		return a.reaches(ctx)
	}
	return lab.Answering(ctx, a.bare.Master, a.ids()...)
}

func newAdopter(t *testing.T, version string, minions ...string) *adopter {
	return newAdopterIn(t, lab.Options{}, lab.Settings{"interface": "0.0.0.0"}, nil, version, minions...)
}

func newAdopterIn(t *testing.T, o lab.Options, master, minion lab.Settings, version string, minions ...string) *adopter {
	l := labtest.New(t, o)
	if !l.Namespaces() {
		t.Skip("needs root: a master on all addresses of a host of its own")
	}
	settings := lab.Settings{"timeout": 5, "gather_job_timeout": 15}
	maps.Copy(settings, master)
	b, err := l.NewBare(t.Context(), version, minions, settings, minion)
	labtest.Must(t, err)
	labtest.Must(t, b.Up(t.Context()))
	a := &adopter{t: t, bare: b, node: &lab.Node{Host: b.Master.Host(), Master: b.Master, Daemon: b.Master.NewSetup()}}
	a.bus = listen(t, b.Master)
	return a
}

func (a *adopter) ids() (ids []string) {
	for _, m := range a.bare.Minions {
		ids = append(ids, m.ID)
	}
	return ids
}

// ctl runs saltclusterctl with this host's salt-master, and returns what it prints.
func (a *adopter) ctl(code int, args ...string) string {
	a.t.Helper()
	if verb := args[0]; verb == "setup" || verb == "leave" || verb == "keys" && args[1] == "collect" {
		args = append(args, "--config-dir", a.bare.Master.ConfigDir, "--salt-master", a.bare.Master.Command())
	}
	res, err := a.node.Daemon.Ctl(a.t.Context(), args...)
	labtest.Must(a.t, err)
	if res.Code != code {
		a.t.Fatalf("saltclusterctl %s: exit code %d instead of %d\n%s", strings.Join(args, " "), res.Code, code, res.Output())
	}
	return res.Stdout
}

func (a *adopter) says(text string, parts ...string) {
	a.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			a.t.Errorf("lacks %q:\n%s", p, text)
		}
	}
}

// files are all files of the host's /etc/salt, with what is in them.
func (a *adopter) files() map[string]string {
	a.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(a.bare.Master.ConfigDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	})
	labtest.Must(a.t, err)
	return out
}

// keys are the key files of minions, without those that nobody sees, and what the master and each minion hold to know
// each other.
func (a *adopter) keys() map[string]string {
	a.t.Helper()
	out := a.files()
	maps.DeleteFunc(out, func(path, _ string) bool {
		return !strings.Contains(path, "/pki/master/") || strings.HasPrefix(filepath.Base(path), ".") ||
			strings.HasSuffix(path, ".bak")
	})
	for _, m := range a.bare.Minions {
		for _, name := range []string{"minion_master.pub", "minion.pub"} {
			raw, err := os.ReadFile(filepath.Join(m.PKIDir(), name))
			labtest.Must(a.t, err)
			out[m.ID+" "+name] = string(raw)
		}
	}
	return out
}

// signIns counts what minions have signed in at the master, and at saltclusterd, by now.
func (a *adopter) signIns() int {
	a.bus.fence(a.t.Context(), a.t)
	n := 0
	for _, id := range a.ids() {
		n += len(a.bus.signIns(id))
	}
	return n
}

// byMinion says when each minion signed in, counted from began.
func (a *adopter) byMinion(began time.Time) string {
	var parts []string
	for _, id := range a.ids() {
		var at []string
		for _, e := range a.bus.signIns(id) {
			if since := e.at.Sub(began); since > 0 {
				at = append(at, since.Round(100*time.Millisecond).String())
			}
		}
		parts = append(parts, id+" after "+strings.Join(at, ", "))
	}
	return strings.Join(parts, "; ")
}

// outage is how long minions' host got no connection, for each port.
type outage map[string]time.Duration

// watch tries both ports, again and again, until stop is called.
func (a *adopter) watch() (stop func() outage) {
	ctx, cancel := context.WithCancel(a.t.Context())
	from, to := a.bare.Minions[0].Host(), a.bare.Master.Host().Addr
	longest := outage{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, port := range []string{"4505", "4506"} {
		wg.Go(func() {
			var since time.Time
			tries := time.NewTicker(10 * time.Millisecond)
			defer tries.Stop()
			for ; ctx.Err() == nil; <-tries.C {
				err := from.Accepts(ctx, net.JoinHostPort(to, port))
				switch now := time.Now(); {
				case ctx.Err() != nil:
					return
				case err == nil:
					since = time.Time{}
				case since.IsZero():
					since = now
				default:
					mu.Lock()
					longest[port] = max(longest[port], now.Sub(since))
					mu.Unlock()
				}
			}
		})
	}
	return func() outage {
		cancel()
		wg.Wait()
		return longest
	}
}

// restart stops the salt-master, does what is to be done meanwhile, starts it, and waits until all minions answer it.
func (a *adopter) restart(meanwhile func()) (signedIn int, took time.Duration, none outage) {
	ctx, m := a.t.Context(), a.bare.Master
	before, stop, began := a.signIns(), a.watch(), time.Now()
	labtest.Must(a.t, m.Stop(ctx))
	meanwhile()
	labtest.Must(a.t, m.Start(ctx))
	labtest.Must(a.t, m.WaitReady(ctx, 3*time.Minute))
	a.deaf = false
	labtest.Must(a.t, a.reached(ctx))
	took, none = time.Since(began), stop()
	signedIn = a.signIns() - before
	a.t.Log("signed in: " + a.byMinion(began))
	return signedIn, took, none
}

// adopt does what setup prints, step by step.
func (a *adopter) adopt() (signedIn int, took time.Duration, none outage) {
	ctx, n := a.t.Context(), a.node
	before := a.files()
	a.says(a.ctl(0, "setup", "--check", "--node", "m1"), "nothing was changed", "1. systemctl enable --now saltclusterd",
		"minion keys: ")
	a.says(a.ctl(0, "setup", "--dry-run", "--node", "m1"), "master_id: 'm1'")
	if after := a.files(); !maps.Equal(before, after) {
		a.t.Errorf("a look has changed files: %v", slices.Sorted(maps.Keys(after)))
	}
	a.says(a.ctl(0, "setup", "--yes", "--node", "m1"), "1. systemctl enable --now saltclusterd",
		"2. saltclusterctl bootstrap", "3. systemctl restart salt-master")
	labtest.Must(a.t, n.Daemon.Start(ctx))
	labtest.Must(a.t, n.Daemon.WaitReady(ctx, time.Minute))
	a.says(a.ctl(0, "bootstrap"), "m1 is a member", "1. systemctl restart salt-master")
	labtest.Must(a.t, a.reached(ctx)) // as ever: nobody has noticed
	a.says(a.ctl(0, "setup"), "1. systemctl restart salt-master", "2. saltclusterctl status --check")
	signedIn, took, none = a.restart(func() { n.Master.Addr = n.Local })
	a.says(a.ctl(0, "setup"), "nothing is left to do")
	labtest.Must(a.t, lab.Eventually(ctx, time.Minute, "a cluster that is well", func(ctx context.Context) error {
		res, err := n.Daemon.Ctl(ctx, "status", "--check")
		if err == nil {
			err = res.Err()
		}
		return err
	}))
	return signedIn, took, none
}

// A running master with minions becomes a node: minions notice no more than that it was restarted.
func TestAdopt(t *testing.T) {
	t.Parallel()
	a := newAdopter(t, lab.Versions[1], lab.Versions[1])
	keys := a.keys()
	_, took, none := a.adopt()
	t.Logf("all answer again after %s; no connection for %v", took, none)
	a.same(keys)
}

func (a *adopter) same(keys map[string]string) {
	a.t.Helper()
	now := a.keys()
	for name, text := range keys {
		if now[name] != text {
			a.t.Errorf("%s has changed", name)
		}
		delete(now, name)
	}
	if len(now) > 0 {
		a.t.Errorf("there are new keys: %v", slices.Sorted(maps.Keys(now)))
	}
}

// The same with masters of the oldest and the newest version, minions of all, measured beside a mere restart; then
// back, with what happened meanwhile, and in again.
func TestAdoptAndLeave(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	for _, version := range []string{lab.Versions[0], lab.Versions[2]} {
		t.Run(version, func(t *testing.T) { testAdoptAndLeave(t, version) })
	}
}

func testAdoptAndLeave(t *testing.T, version string) {
	a := newAdopter(t, version, lab.Versions...)
	ctx, n, keys := t.Context(), a.node, a.keys()
	jobs := []string{async(t, n, "test.arg", "before")}
	// Before the restart, for a stock master that is stopped loses what is on its way to it.
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "returns",
		func(ctx context.Context) error { return a.returned(ctx, jobs...) }))
	usual, usually, gap := a.restart(func() {})
	t.Logf("a mere restart: %d sign-ins of %d minions, all answer again after %s, no connection for %v", usual,
		len(a.ids()), usually, gap)
	signedIn, took, gap := a.adopt()
	counted := int(metricAt(t, n, "127.0.0.1",
		func(line string) bool {
			return strings.HasPrefix(line, `saltcluster_signin_requests_total{outcome="accepted`)
		}))
	t.Logf("adopted: %d sign-ins heard, %d counted, all answer again after %s, no connection for %v", signedIn, counted,
		took, gap)
	if most := max(usual, len(a.ids())); counted > most {
		t.Errorf("%d sign-ins; a mere restart takes %d", counted, most)
	}
	a.same(keys)
	jobs = append(jobs, async(t, n, "test.arg", "adopted"))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "returns",
		func(ctx context.Context) error { return a.returned(ctx, jobs...) }))

	a.says(a.ctl(0, "leave", "--restore-master", "--dry-run"), "nothing was changed", "the last of salt")
	a.says(a.ctl(0, "leave", "--restore-master", "--yes"), "removed: ",
		"systemctl disable --now saltclusterd; systemctl restart salt-master")
	signedIn, took, gap = a.restart(func() {
		labtest.Must(t, n.Daemon.Stop(ctx))
		n.Master.Addr = n.Addr
	})
	t.Logf("left: %d sign-ins, all answer again after %s, no connection for %v", signedIn, took, gap)
	a.same(keys)
	labtest.Must(t, a.returned(ctx, jobs...))
	a.says(a.ctl(0, "leave", "--restore-master", "--dry-run"), "saltclusterd is not running")

	res, err := n.Master.Run(ctx, "salt-key", "-y", "-d", a.ids()[0]) // decided while it was away
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	a.says(a.ctl(0, "setup", "--yes"), "written:", "1. systemctl enable --now saltclusterd",
		"2. systemctl restart salt-master")
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.WaitReady(ctx, time.Minute))
	labtest.Must(t, n.Master.Stop(ctx))
	n.Master.Addr = n.Local
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, n.Daemon.Serving(ctx, time.Minute))
	labtest.Must(t, lab.Answering(ctx, n.Master, a.ids()[1:]...))
	if _, err := os.Stat(filepath.Join(n.Master.PKIDir(), "minions", a.ids()[0])); !os.IsNotExist(err) {
		t.Errorf("a key that was deleted meanwhile is there: %v", err)
	}
}

// returned says whether all minions' returns of the jobs are in the master's own cache.
func (a *adopter) returned(ctx context.Context, jids ...string) error {
	for _, jid := range jids {
		res, err := a.bare.Master.Run(ctx, "salt-run", "--out=json", "jobs.lookup_jid", jid)
		if err != nil {
			return err
		}
		for _, id := range a.ids() {
			if !strings.Contains(res.Stdout, `"`+id+`"`) {
				return fmt.Errorf("job %s: no return of %s", jid, id)
			}
		}
	}
	return nil
}
