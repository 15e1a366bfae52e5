package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

func keyFile(body string) string {
	return "-----BEGIN PUBLIC KEY-----\n" + body + "\n-----END PUBLIC KEY-----"
}

// newNative is a host with a master of Salt's own cluster.
func newNative(t *testing.T, version string) *host {
	h := newHost(t, "")
	h.write("etc/salt/master.d/cluster.conf",
		"cluster_id: theirs\ncluster_peers: [10.0.0.12]\ncluster_pki_dir: "+h.path("share/pki")+"\n")
	h.version(version)
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	h.write("share/pki/cluster.pem", string(key.PEM()))
	h.write("share/pki/minions/web1", keyFile("QUFB"))
	h.write("share/pki/minions/web2", keyFile("QkJC"))
	h.write("share/pki/minions_denied/web1", keyFile("Q0ND"))
	h.write("share/pki/minions_pre/half", "?")
	h.write("etc/salt/pki/master/minions/web2", keyFile("QkJC")) // as it is there, too
	return h
}

func (h *host) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(h.path(name))
	require.NoError(h.t, err)
	return string(text)
}

// A master of Salt's own cluster takes along what its minions trust and the keys that it has accepted, and nothing of
// before.
func TestSetupLeavesSaltsOwnCluster(t *testing.T) {
	for _, version := range []string{"3007.15", "3008.3"} {
		t.Run(version, func(t *testing.T) {
			h := newNative(t, version)
			s := h.look(nil)
			p := s.Plan()
			if p.Failed() > 0 || len(p.Files) != 5 {
				t.Fatalf("%+v\n%s", p.Files, text(p.Checks))
			}
			wants(t, text(p.Checks), "cluster.pem: becomes the cluster's", "2 accepted, 1 pending, 1 denied; they are copied to",
				"Salt's own cluster theirs",
				"port 4521", "afterwards remove cluster_id", "share/pki/minions_pre/half: is not a public key")
			wants(t, p.Files[0].Text, "cluster_pool_port: 4521")
			wants(t, p.Files[2].Path+p.Files[2].What+p.Files[3].What, "master.pem", "the key of Salt's own cluster",
				"2 accepted, 1 denied")
			wants(t, p.Files[4].Text, "cluster_id: null")
			require.NoError(t, Write(s.Asked.Own, p.Files))
			own, after := h.path("etc/salt/pki/master"), h.look(nil)
			private, _, err := localmaster.ReadIdentity(after.Master)
			if err != nil || !after.isSameKey(private) || after.Identity() != s.Identity() {
				t.Errorf("another key: %v", err)
			}
			if old, _ := filepath.Glob(filepath.Join(own, "*.bak")); len(old) != 1 {
				t.Errorf("the old key: %v", old)
			}
			for name, want := range map[string]string{"minions/web1": "QUFB", "minions/web2": "QkJC",
				"minions_denied/web1": "Q0ND"} {
				check.Equal(t, h.read("etc/salt/pki/master/"+name), keyFile(want), name)
			}
			for _, name := range []string{"minions_pre/web2", "minions_pre/half"} {
				if _, err := os.Stat(filepath.Join(own, name)); !os.IsNotExist(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			// minions/web1 and minions_pre/web2 of before
			if aside, _ := filepath.Glob(filepath.Join(own, "before-*", "*", "*")); len(aside) != 2 {
				t.Errorf("aside: %v", aside)
			}
			if after.Master.Text("cluster_id") != "" || !setsNative(mustWithout(t, after)) {
				t.Error("cluster_id still counts, or is gone from where it was")
			}
			if p = after.Plan(); p.Failed() > 0 || len(p.Files) != 0 || len(p.Next) != 4 {
				t.Errorf("again: %+v, %v\n%s", p.Files, p.Next, text(p.Checks))
			}
			h.write("share/pki/minions/web3", keyFile("RERE")) // accepted there meanwhile
			if p = h.look(nil).Plan(); len(p.Files) != 1 || !strings.Contains(p.Files[0].What, "3 accepted") {
				t.Errorf("one more: %+v\n%s", p.Files, text(p.Checks))
			}

			p = h.look(serving()).Plan() // now it is ours, and what the others accept is none of its business
			if p.Failed() > 0 || len(p.Files) != 0 || strings.Contains(text(p.Checks), "Salt's own") {
				t.Errorf("a member: %+v\n%s", p.Files, text(p.Checks))
			}
			h.write("etc/salt/pki/master/.saltclusterd-keys.m1", "stamp")
			if p = h.look(nil).Plan(); len(p.Files) != 0 {
				t.Errorf("a member without its memory: %+v", p.Files)
			}
			l := h.look(serving()).Leaving(nil)
			if l.Failed() == 0 {
				t.Errorf("it would go back:\n%s", text(l.Checks))
			}
			wants(t, text(l.Checks), "master.d/cluster.conf: sets cluster_id", "remove cluster_id")
		})
	}
}

func mustWithout(t *testing.T, s *Site) *localmaster.Config {
	t.Helper()
	bare, err := s.withoutDropIn()
	require.NoError(t, err)
	return bare
}

func TestSetup_NativeClusterRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*host)
		want   string
	}{
		"no key": {func(h *host) {
			require.NoError(h.t, os.Remove(h.path("share/pki/cluster.pem")))
		}, "Salt's own cluster has never run on this host"},
		"a passphrase": {func(h *host) {
			h.write("share/pki/cluster.pem",
				"-----BEGIN ENCRYPTED PRIVATE KEY-----\nQUFB\n-----END ENCRYPTED PRIVATE KEY-----\n")
		}, "cluster_key_pass"},
		"a port that is taken": {func(h *host) {
			h.listens(wildcard + "4: 00000000:11A9 00000000:0000 0A 0:0 0:0 0 0 0 15\n")
		}, "set cluster_pool_port to another port"},
		"an old store": {func(h *host) {
			h.write("etc/salt/master.d/keys.conf", "keys.cache_driver: mmap_key\n")
			h.write("etc/salt/pki/master/.mmap_keys.idx", "")
		}, "move "},
	} {
		t.Run(name, func(t *testing.T) {
			h := newNative(t, "3008.3")
			tt.change(h)
			p := h.look(nil).Plan()
			if p.Failed() == 0 || len(p.Files) != 0 {
				t.Errorf("%+v", p.Files)
			}
			wants(t, text(p.Checks), tt.want)
		})
	}
}

// Keys and key in one directory: there is nothing to be copied.
func TestSetup_NativeClusterInPlace(t *testing.T) {
	h := newNative(t, "3008.3")
	h.write("etc/salt/master.d/cluster.conf", "cluster_id: theirs\ncluster_peers: [10.0.0.12]\n")
	h.write("etc/salt/pki/master/cluster.pem", h.read("share/pki/cluster.pem"))
	h.write("etc/salt/saltclusterd", "cluster_pool_port: 4530\n")
	s := h.look(nil)
	s.Asked.Join = "m0"
	p := s.Plan()
	if p.Failed() > 0 || len(p.Files) != 3 || strings.Contains(p.Files[0].Text, "cluster_pool_port") ||
		!strings.HasSuffix(p.Files[1].Path, "master.pem") {
		t.Fatalf("%+v\n%s", p.Files, text(p.Checks))
	}
	require.NoError(t, Write(s.Asked.Own, p.Files))
	if cfg, err := config.Load(s.Asked.Own); err != nil || cfg.Cluster.PoolPort != 4530 {
		t.Errorf("%v", err)
	}
	check.Equal(t, h.read("etc/salt/pki/master/minions/web1"), "key", "a key was touched")
}
