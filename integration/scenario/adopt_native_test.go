//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// newNativeSite is two masters of Salt's own cluster, with two minions each that were accepted on the first one.
func newNativeSite(t *testing.T, version string) *hotSite {
	l := labtest.New(t, lab.Options{})
	if !l.Namespaces() {
		t.Skip("needs root: masters on hosts of their own")
	}
	ctx, s := t.Context(), &hotSite{t: t, minions: map[string]*lab.Minion{}, pids: map[string]int{}}
	var hosts []*lab.Host
	for _, name := range []string{"m1", "m2"} {
		h, err := l.Host(ctx, name)
		labtest.Must(t, err)
		hosts, s.addrs = append(hosts, h), append(s.addrs, h.Addr)
	}
	for i, h := range hosts {
		set := lab.Settings{
			// Salt's own cluster knows a master by the address that the others reach it at, which must be its id, too.
			"id": h.Addr, "interface": h.Addr, "timeout": 5, "gather_job_timeout": 15,
			"cluster_id": "theirs", "cluster_peers": []string{s.addrs[1-i]},
			"cluster_pki_dir": filepath.Join(l.Dir(), "share/pki"),
		}
		if version == lab.Versions[2] { // it can do without a shared file system
			set["cluster_pki_dir"], set["cluster_isolated_filesystem"], set["cluster_secret"] = filepath.Join(h.Dir(),
				"etc/salt/pki/cluster"), true, lab.Secret
		}
		m, err := h.NewMaster(version, h.Addr, set)
		labtest.Must(t, err)
		s.masters[i] = &adopter{t: t, bare: &lab.Bare{Lab: l, Master: m},
			node: &lab.Node{Host: h, Master: m, Daemon: m.NewSetup()}}
		labtest.Must(t, m.Start(ctx))
		labtest.Must(t, m.WaitReady(ctx, 3*time.Minute))
	}
	for i, a := range s.masters {
		for n := range 2 {
			id := fmt.Sprintf("of%d-%d", i+1, n+1)
			s.minion(id, lab.Settings{"master": s.addrs[i]})
			a.bare.Minions = append(a.bare.Minions, s.minions[id])
		}
		a.reaches = func(ctx context.Context) error { return atLeast(ctx, a) }
		a.bus = listen(t, a.bare.Master)
	}
	for _, a := range s.masters { // on the master that they asked: how fast the others hear of it is Salt's affair
		dir := filepath.Join(s.pki(a), "minions")
		for _, id := range a.ids() {
			labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, "the key of "+id, func(ctx context.Context) error {
				if _, err := a.bare.Master.Run(ctx, "salt-key", "-y", "-a", id); err != nil {
					return err
				}
				_, err := os.Stat(filepath.Join(dir, id))
				return err
			}))
		}
	}
	for _, a := range s.masters {
		labtest.Must(t, a.reached(ctx))
	}
	return s
}

// pki is where a master of Salt's own cluster has its minion keys.
func (s *hotSite) pki(a *adopter) string {
	if a.bare.Master.Version == lab.Versions[2] {
		return filepath.Join(a.node.Host.Dir(), "etc/salt/pki/cluster")
	}
	return filepath.Join(a.bare.Lab.Dir(), "share/pki")
}

// atLeast waits until the minions of a answer it, whoever else does.
func atLeast(ctx context.Context, a *adopter) error {
	return lab.Eventually(ctx, 4*time.Minute, "minions to answer "+a.node.Name, func(ctx context.Context) error {
		got, err := a.bare.Master.Pub(ctx, "*", "test.ping")
		if err != nil {
			return err
		}
		for _, id := range a.ids() {
			if got[id] != true {
				return fmt.Errorf("%s answers %v", id, got[id])
			}
		}
		return nil
	})
}

// Masters of Salt's own cluster become ours, one after the other. Their cluster.pem is the identity, so no minion gets
// another key, and what was accepted there is accepted.
func TestAdoptNative(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	for _, version := range lab.Versions[1:] {
		t.Run(version, func(t *testing.T) { testAdoptNative(t, version) })
	}
}

func testAdoptNative(t *testing.T, version string) {
	s := newNativeSite(t, version)
	ctx, a, b, before := t.Context(), s.masters[0], s.masters[1], s.minionKeys()
	files := t.TempDir()
	a.deaf = true // with interface: ADDRESS, as Salt's own cluster wants it
	a.adopt()
	a.says(a.ctl(0, "setup"), "nothing is left to do")
	labtest.Must(t, b.reached(ctx)) // Salt's own cluster goes on without it
	s.untouched(before)

	m2 := filepath.Join(files, "m2.keys")
	a.says(b.ctl(0, "keys", "collect", m2, "--node", "m2"), s.pki(b), "accepted")
	a.ctl(0, "keys", "merge", "--yes", m2)
	s.prepare(files)
	b.deaf = true
	s.follow(files, func() {
		for _, a := range s.masters {
			a.bare.Minions, a.reaches = s.these("of1-1", "of1-2", "of2-1", "of2-2"), nil
		}
	})
	for i, a := range s.masters {
		labtest.Must(t, a.reached(ctx))
		s.once(a, fmt.Sprint("m", i+1), a.ids()...)
	}
	s.untouched(before)
	a.says(a.ctl(6, "leave", "--restore-master", "--yes"), "go back to Salt's own cluster", "nothing was changed")
}
