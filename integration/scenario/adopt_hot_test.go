//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// hotSite is two stock masters with one master.pem, and minions that know both of them or one.
type hotSite struct {
	t       *testing.T
	masters [2]*adopter
	addrs   []string
	minions map[string]*lab.Minion
	pids    map[string]int
	joining []string // what the second one needs to join
}

func newHotSite(t *testing.T, version string) *hotSite {
	return newHotSiteWith(t, version, nil, (*hotSite).shareKey)
}

// newHotSiteWith gives the masters these settings, and has keys lay out what they are known by.
func newHotSiteWith(t *testing.T, version string, settings lab.Settings, keys func(*hotSite)) *hotSite {
	l := labtest.New(t, lab.Options{})
	if !l.Namespaces() {
		t.Skip("needs root: masters on all addresses of hosts of their own")
	}
	ctx, s := t.Context(), &hotSite{t: t, minions: map[string]*lab.Minion{}, pids: map[string]int{}}
	for i, name := range []string{"m1", "m2"} {
		h, err := l.Host(ctx, name)
		labtest.Must(t, err)
		m, err := h.NewMaster(version, h.Addr, lab.Settings{"interface": "0.0.0.0", "timeout": 5, "gather_job_timeout": 15},
			settings)
		labtest.Must(t, err)
		s.addrs = append(s.addrs, h.Addr)
		s.masters[i] = &adopter{t: t, bare: &lab.Bare{Lab: l, Master: m},
			node: &lab.Node{Host: h, Master: m, Daemon: m.NewSetup()}}
	}
	keys(s)
	for _, a := range s.masters {
		labtest.Must(t, a.bare.Master.Start(ctx))
	}
	for _, a := range s.masters {
		labtest.Must(t, a.bare.Master.WaitReady(ctx, 3*time.Minute))
		a.bus = listen(t, a.bare.Master)
	}
	return s
}

// minion starts one.
func (s *hotSite) minion(id string, over lab.Settings) {
	s.minionOn("min", id, nil, over)
}

// minionOn starts one on a host, prepared before that.
func (s *hotSite) minionOn(host, id string, prepare func(*lab.Minion), over lab.Settings) {
	h, err := s.masters[0].bare.Lab.Host(s.t.Context(), host)
	labtest.Must(s.t, err)
	m, err := h.NewMinion(lab.Versions[len(s.minions)%len(lab.Versions)], id, s.addrs[0], over)
	labtest.Must(s.t, err)
	if prepare != nil {
		prepare(m)
	}
	labtest.Must(s.t, m.Start(s.t.Context()))
	s.minions[id], s.pids[id] = m, m.PID()
}

// Minions of masters with keys that differ.
const (
	hotBoth  = "both"  // uses both masters, accepted on both
	hotHalf  = "half"  // uses both, accepted on the first only
	hotFirst = "first" // uses the first one only
	hotLast  = "last"  // uses the second one only
)

// differ gives the site minions that the masters do not agree about.
func (s *hotSite) differ() {
	s.minion(hotBoth, lab.Settings{"master": s.addrs})
	s.minion(hotHalf, lab.Settings{"master": s.addrs})
	s.minion(hotFirst, lab.Settings{"master": s.addrs[0]})
	s.minion(hotLast, lab.Settings{"master": s.addrs[1]})
	s.accept(0, hotBoth, hotHalf, hotFirst)
	s.accept(1, hotBoth, hotLast)
	s.masters[0].bare.Minions = s.these(hotBoth, hotHalf, hotFirst)
	s.masters[1].bare.Minions = s.these(hotBoth, hotLast)
	labtest.Must(s.t, lab.Eventually(s.t.Context(), time.Minute, "half to be pending on the second",
		func(context.Context) error {
			if got := s.masters[1].bare.Master.KeyState(hotHalf); got != "minions_pre" {
				return fmt.Errorf("%q", got)
			}
			return nil
		}))
	for i, a := range s.masters {
		labtest.Must(s.t, a.reached(s.t.Context()))
		s.decided(i)
	}
}

func (s *hotSite) these(ids ...string) (out []*lab.Minion) {
	for _, id := range ids {
		out = append(out, s.minions[id])
	}
	return out
}

// shareKey gives both masters one key pair, as Salt's manual has it for masters that minions use side by side.
func (s *hotSite) shareKey() { s.layOut("master", s.masters[:]...) }

// layOut gives masters a new key pair of that name.
func (s *hotSite) layOut(name string, masters ...*adopter) *saltcrypt.MasterKey {
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(s.t, err)
	for _, a := range masters {
		dir := a.bare.Master.PKIDir()
		labtest.Must(s.t, os.MkdirAll(dir, 0o700))
		labtest.Must(s.t, os.WriteFile(filepath.Join(dir, name+".pem"), key.PEM(), 0o400))
		labtest.Must(s.t, os.WriteFile(filepath.Join(dir, name+".pub"), []byte(key.PublicText()), 0o644))
	}
	return key
}

func (s *hotSite) accept(master int, ids ...string) {
	m := s.masters[master].bare.Master
	for _, id := range ids {
		labtest.Must(s.t, lab.Eventually(s.t.Context(), 3*time.Minute, "the key of "+id, func(ctx context.Context) error {
			if m.KeyState(id) == "minions" {
				return nil
			}
			res, err := m.Run(ctx, "salt-key", "-y", "-a", id)
			if err == nil {
				err = res.Err()
			}
			if err == nil && m.KeyState(id) != "minions" {
				err = fmt.Errorf("it is in %q", m.KeyState(id))
			}
			return err
		}))
	}
}

// decided puts keys there that the masters do not agree about, of minions that nobody has started.
func (s *hotSite) decided(master int) {
	dir := s.masters[master].bare.Master.PKIDir()
	put := func(state, id string, key *saltcrypt.MasterKey) {
		labtest.Must(s.t, os.WriteFile(filepath.Join(dir, state, id), []byte(key.PublicText()), 0o644))
	}
	put("minions", "rebuilt", s.key(master))
	put([]string{"minions", "minions_rejected"}[master], "fired", s.key(2))
	put([]string{"minions_pre", "minions_rejected"}[master], "unwanted", s.key(2))
}

var hotKeys [3]*saltcrypt.MasterKey

func (s *hotSite) key(n int) *saltcrypt.MasterKey {
	if hotKeys[n] == nil {
		key, err := saltcrypt.GenerateMasterKey(2048)
		labtest.Must(s.t, err)
		hotKeys[n] = key
	}
	return hotKeys[n]
}

// content is the minion keys of a master, by directory and id.
func (s *hotSite) content(a *adopter) map[string]string {
	out := map[string]string{}
	for _, state := range []string{"minions", "minions_pre", "minions_rejected", "minions_denied"} {
		entries, err := os.ReadDir(filepath.Join(a.bare.Master.PKIDir(), state))
		labtest.Must(s.t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(a.bare.Master.PKIDir(), state, e.Name()))
			labtest.Must(s.t, err)
			out[state+"/"+e.Name()] = saltcrypt.CleanKey(string(raw))
		}
	}
	return out
}

// untouched says that no minion was restarted, or has another key or another master's.
func (s *hotSite) untouched(before map[string]string) {
	s.t.Helper()
	for id, m := range s.minions {
		if !m.Running() || m.PID() != s.pids[id] {
			s.t.Errorf("%s is not the process it was", id)
		}
	}
	if now := s.minionKeys(); !maps.Equal(now, before) {
		s.t.Errorf("minions have other keys: %v", slices.Sorted(maps.Keys(now)))
	}
}

func (s *hotSite) minionKeys() map[string]string {
	out := map[string]string{}
	for id, m := range s.minions {
		for _, name := range []string{"minion.pem", "minion.pub", "minion_master.pub"} {
			raw, err := os.ReadFile(filepath.Join(m.PKIDir(), name))
			labtest.Must(s.t, err)
			out[id+" "+name] = string(raw)
		}
	}
	return out
}

// once publishes a command that leaves a trace, and says that each minion has carried it out once.
func (s *hotSite) once(a *adopter, name string, ids ...string) {
	s.t.Helper()
	dir := s.t.TempDir()
	labtest.Must(s.t, os.Chmod(dir, 0o777))
	got, err := a.bare.Master.Pub(s.t.Context(), "*", "cmd.run", "echo ran >> "+filepath.Join(dir, name))
	labtest.Must(s.t, err)
	labtest.Must(s.t, lab.AnsweredBy(got, ids...))
	raw, err := os.ReadFile(filepath.Join(dir, name))
	labtest.Must(s.t, err)
	if n := strings.Count(string(raw), "ran"); n != len(ids) {
		s.t.Errorf("%d minions have run a command %d times", len(ids), n)
	}
}

// Two masters that minions use side by side, with keys that differ, become one cluster, one after the other: no minion
// is restarted or given another key, and afterwards each master reaches all of them.
func TestAdoptHot(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	for _, version := range lab.Versions[:2] {
		t.Run(version, func(t *testing.T) { testAdoptHot(t, version) })
	}
}

func testAdoptHot(t *testing.T, version string) {
	s := newHotSite(t, version)
	s.differ()
	ctx, a, b, before := t.Context(), s.masters[0], s.masters[1], s.minionKeys()
	files := t.TempDir()
	m1, m2 := filepath.Join(files, "m1.keys"), filepath.Join(files, "m2.keys")
	a.says(a.ctl(0, "keys", "collect", m1, "--node", "m1"), "5 accepted", "1 pending", "written: ")
	a.says(b.ctl(0, "keys", "collect", m2, "--node", "m2"), "3 accepted", "1 pending", "2 rejected")
	a.says(a.ctl(4, "keys", "merge", m1, m2), "treated as the cluster", "2 in conflict", "saltclusterctl setup")

	a.adopt()
	labtest.Must(t, b.reached(ctx)) // the other one goes on as it did
	s.once(b, "b", b.ids()...)
	s.untouched(before)

	refused := s.prepare(files)
	own := s.content(b)
	refused(b)
	if now := s.content(b); !maps.Equal(own, now) {
		t.Errorf("a refused join has changed keys: %v", slices.Sorted(maps.Keys(now)))
	}
	a.says(a.ctl(10, "keys", "merge", "--dry-run", m2), "2 conflicts are not decided", "rebuilt", "fired")
	a.says(a.ctl(6, "keys", "merge", "--yes", m2), "nothing was changed")
	a.says(a.ctl(0, "keys", "merge", "--yes", m2, "--take", "rebuilt=m2", "--prefer", "cluster"),
		"merged 3 keys into the cluster")
	a.says(a.ctl(0, "keys", "merge", "--yes", m2, "--prefer", "cluster"), "nothing to merge: the cluster's keys stay as they are")
	labtest.Must(t, a.reached(ctx))

	all := []string{hotBoth, hotHalf, hotFirst, hotLast}
	s.follow(files, func() {
		for _, a := range s.masters {
			a.bare.Minions = s.these(all...)
		}
	})
	for i, a := range s.masters {
		labtest.Must(t, a.reached(ctx))
		s.once(a, fmt.Sprint("m", i+1), all...)
	}
	s.untouched(before)
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "both masters to have the same keys", func(context.Context) error {
		if x, y := s.content(a), s.content(b); !maps.Equal(x, y) {
			return fmt.Errorf("%v, %v", slices.Sorted(maps.Keys(x)), slices.Sorted(maps.Keys(y)))
		}
		return nil
	}))
	for id, want := range map[string]string{"fired": "minions", "unwanted": "minions_rejected", hotHalf: "minions",
		hotLast: "minions"} {
		if got := a.bare.Master.KeyState(id); got != want {
			t.Errorf("%s is in %s", id, got)
		}
	}
	now := s.content(b)
	if now["minions/rebuilt"] != s.key(1).PublicText() || now["minions_denied/rebuilt"] != s.key(0).PublicText() {
		t.Error("another key than the operator has chosen counts for rebuilt")
	}
}

// prepare sets up the second master to join the first one with a token. What it returns tries to, and is refused.
func (s *hotSite) prepare(files string) (refused func(*adopter)) {
	a, b := s.masters[0], s.masters[1]
	ctx, to := s.t.Context(), a.node.Addr
	a.says(b.ctl(0, "setup", "--check", "--node", "m2", "--join", to), "keys collect m2.keys here", "nothing was changed")
	a.says(b.ctl(0, "setup", "--yes", "--node", "m2", "--join", to), "written:",
		"saltclusterctl join "+to+" --token-file -", "systemctl restart salt-master")
	labtest.Must(s.t, b.node.Daemon.Start(ctx))
	labtest.Must(s.t, b.node.Daemon.WaitReady(ctx, time.Minute))
	a.ctl(0, "token", "create", "--node", "m2", "--file", filepath.Join(files, "token"))
	return func(b *adopter) { b.ctl(6, "join", to, "--token-file", filepath.Join(files, "token")) }
}

// follow has the second master join, and restarted; then it serves what then says.
func (s *hotSite) follow(files string, then func()) {
	a, b := s.masters[0], s.masters[1]
	to := a.node.Addr
	a.says(b.ctl(0, append([]string{"join", to, "--token-file", filepath.Join(files, "token")}, s.joining...)...), "m2 is a")
	if b.reaches == nil { // nobody has noticed; what it publishes reaches the minions of the other one, too, from now on
		b.reaches = func(ctx context.Context) error { return atLeast(ctx, b) }
		defer func() { b.reaches = nil }()
	}
	labtest.Must(s.t, b.reached(s.t.Context()))
	a.says(b.ctl(0, "setup", "--join", to), "1. systemctl restart salt-master")
	then()
	_, took, none := b.restart(func() { b.node.Master.Addr = b.node.Local })
	s.t.Logf("all answer the second master after %s; no connection for %v", took, none)
	a.says(b.ctl(0, "setup"), "nothing is left to do")
}

// inFailover has both masters accept these minions, as sites with minions in failover have it, and each count as
// reached where it answers one of the masters.
func (s *hotSite) inFailover(ids ...string) {
	for _, id := range ids {
		pub := filepath.Join(s.minions[id].PKIDir(), "minion.pub")
		eventually(s.t, time.Minute, "the key of "+id, func() bool {
			raw, err := os.ReadFile(pub)
			return err == nil && strings.Contains(string(raw), "-----END")
		})
		raw, err := os.ReadFile(pub)
		labtest.Must(s.t, err)
		for _, m := range s.masters {
			dir := m.bare.Master.PKIDir()
			labtest.Must(s.t, os.WriteFile(filepath.Join(dir, "minions", id), raw, 0o644))
			_ = os.Remove(filepath.Join(dir, "minions_pre", id))
		}
	}
	for _, m := range s.masters {
		m.bare.Minions = s.these(ids...)
		m.reaches = func(ctx context.Context) error {
			return lab.Eventually(ctx, 4*time.Minute, "each minion to answer on one of its masters",
				func(ctx context.Context) error {
					got := map[string]any{}
					for _, m := range s.masters {
						some, err := m.bare.Master.Pub(ctx, "*", "test.ping")
						if err != nil && m.bare.Master.Running() {
							return err
						}
						maps.Copy(got, some)
					}
					return lab.AnsweredBy(got, ids...)
				})
		}
	}
}

// Minions with master_type: failover answer on one of their masters all the while, whichever of them has become a node,
// and find the other node when theirs dies.
func TestAdoptFailover(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	s := newHotSite(t, lab.Versions[1])
	ctx, a, b := t.Context(), s.masters[0], s.masters[1]
	ids := []string{"fail1", "fail2", "fail3"}
	for i, id := range ids {
		list := slices.Clone(s.addrs)
		if i == 1 {
			slices.Reverse(list)
		}
		s.minion(id, lab.Settings{"master": list, "master_type": "failover", "master_alive_interval": 5})
	}
	s.inFailover(ids...)
	labtest.Must(t, a.reached(ctx))
	before := s.minionKeys()
	files := t.TempDir()
	a.adopt()
	s.untouched(before)
	s.prepare(files)
	s.follow(files, func() {})
	for i, m := range s.masters {
		labtest.Must(t, lab.Answering(ctx, m.bare.Master, ids...))
		s.once(m, fmt.Sprint("m", i+1), ids...)
	}
	s.untouched(before)

	labtest.Must(t, a.node.Daemon.Kill())
	labtest.Must(t, a.node.Master.Kill())
	labtest.Must(t, lab.Eventually(ctx, 4*time.Minute, "all to have found the other node",
		func(ctx context.Context) error {
			got, err := b.bare.Master.Pub(ctx, "*", "test.ping")
			if err == nil {
				err = lab.AnsweredBy(got, ids...)
			}
			return err
		}))
	s.untouched(before)
}
