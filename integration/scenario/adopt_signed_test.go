//go:build integration

package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// TestAdoptSigned: masters that sign their public key with one master_sign.pem, and minions of three versions that know
// masters by that (Salt's MultiMaster-PKI). The masters become a cluster, and stock masters again; no minion is
// restarted.
func TestAdoptSigned(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-adopt")
	}
	t.Run("each with its own master.pem, in failover", func(t *testing.T) { testAdoptSignedFailover(t, lab.Versions[2]) })
	t.Run("with one master.pem, side by side", func(t *testing.T) { testAdoptSignedHot(t, lab.Versions[0]) })
}

// newSignedSite is two such masters, and minions of three versions of which the second lists them the other way round.
func newSignedSite(t *testing.T, version string, keys func(*hotSite), options lab.Settings) (s *hotSite, ids []string) {
	var sign *saltcrypt.MasterKey
	s = newHotSiteWith(t, version, lab.Settings{"master_sign_pubkey": true}, func(s *hotSite) {
		sign = s.layOut("master_sign", s.masters[:]...)
		keys(s)
	})
	for i, v := range lab.Versions {
		id, set := "signed"+v[2:4], maps.Clone(options)
		set["verify_master_pubkey_sign"], set["always_verify_signature"], set["master"] = true, true, slices.Clone(s.addrs)
		if i == 1 {
			slices.Reverse(set["master"].([]string))
		}
		// Salt's check whether a master is there counts the connections of the whole host.
		s.minionOn(id, id, func(m *lab.Minion) { putKey(t, m.PKIDir(), "master_sign.pub", sign.PublicText()) }, set)
		ids = append(ids, id)
	}
	return s, ids
}

func testAdoptSignedFailover(t *testing.T, version string) {
	s, ids := newSignedSite(t, version, func(s *hotSite) {
		for _, a := range s.masters {
			s.layOut("master", a)
		}
	}, lab.Settings{"master_type": "failover", "master_alive_interval": 5, "retry_dns": 0, "master_tries": -1})
	ctx, a, b := t.Context(), s.masters[0], s.masters[1]
	s.inFailover(ids...)
	labtest.Must(t, a.reached(ctx))
	own := s.minionKeys()
	if got := own[ids[1]+" minion_master.pub"]; saltcrypt.CleanKey(got) != masterPub(t, b.bare.Master) {
		t.Fatalf("%s is not at the second master", ids[1])
	}
	a.adopt()
	files := t.TempDir()
	s.prepare(files)(b) // its master.pem is another one
	s.joining = []string{"--replace-key"}
	s.follow(files, func() {})
	for i, m := range s.masters {
		labtest.Must(t, lab.Answering(ctx, m.bare.Master, ids...))
		s.once(m, fmt.Sprint("m", i+1), ids...)
	}
	s.know(a, own, ids...)
	s.leave()
	s.know(a, own, ids...)
}

// know says that minions are the processes they were, with their own keys, and have the master's public key.
func (s *hotSite) know(a *adopter, own map[string]string, ids ...string) {
	s.t.Helper()
	want := maps.Clone(own)
	for _, id := range ids {
		want[id+" minion_master.pub"] = masterPub(s.t, a.bare.Master)
	}
	labtest.Must(s.t, lab.Eventually(s.t.Context(), time.Minute, "minions to have the key of the cluster",
		func(context.Context) error {
			for name, text := range s.minionKeys() {
				if filepath.Ext(name) == ".pub" && saltcrypt.CleanKey(text) != saltcrypt.CleanKey(want[name]) {
					return fmt.Errorf("%s is not", name)
				}
			}
			return nil
		}))
	s.untouched(s.minionKeys())
}

func testAdoptSignedHot(t *testing.T, version string) {
	s, ids := newSignedSite(t, version, (*hotSite).shareKey, lab.Settings{})
	for i, a := range s.masters {
		s.accept(i, ids...)
		a.bare.Minions = s.these(ids...)
	}
	for _, a := range s.masters {
		labtest.Must(t, a.reached(t.Context()))
	}
	keys := s.minionKeys()
	s.masters[0].adopt()
	files := t.TempDir()
	s.prepare(files)
	own := s.layOut("master_sign", s.masters[1]) // which no minion knows
	s.joining = []string{"--replace-key"}
	s.follow(files, func() {})
	s.signAlike(own)
	for i, a := range s.masters {
		labtest.Must(t, a.reached(t.Context()))
		s.once(a, fmt.Sprint("m", i+1), ids...)
	}
	s.untouched(keys)
	s.leave()
	s.untouched(keys)
}

// signAlike says that the second master signs with the key of the first one now, and has kept its own.
func (s *hotSite) signAlike(own *saltcrypt.MasterKey) {
	s.t.Helper()
	pem := func(path string) string {
		raw, err := os.ReadFile(path)
		labtest.Must(s.t, err)
		return string(raw)
	}
	path := filepath.Join(s.masters[1].bare.Master.PKIDir(), "master_sign.pem")
	if want := pem(filepath.Join(s.masters[0].bare.Master.PKIDir(), "master_sign.pem")); pem(path) != want {
		s.t.Error("the second master signs with another key than the first one")
	}
	backups, err := filepath.Glob(path + ".*")
	labtest.Must(s.t, err)
	if len(backups) != 1 || pem(backups[0]) != string(own.PEM()) {
		s.t.Errorf("its own key is not kept beside it: %v", backups)
	}
	s.masters[0].says(s.masters[1].ctl(0, "verify"), "signing key")
}
