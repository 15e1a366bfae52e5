//go:build integration

package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// salts are the versions that the formula is applied with; a package of each kind that Debian takes is among their
// sources.
var salts = map[string]string{
	"3006.28": "saltclusterd_%s_amd64.deb",
	"3007.15": "saltclusterd-%s-linux-amd64.tar.gz",
	"3008.3":  "saltclusterd_%s_amd64.deb",
}

func source(salt, version string) string {
	return "/packages/" + version + "/" + fmt.Sprintf(salts[salt], version)
}

// states is what an application of states returned.
type states map[string]struct {
	Result  *bool
	Changes map[string]any
	Comment any
	SLS     string `json:"__sls__"`
}

// ids lists those for which something holds.
func (s states) ids(holds func(id string) bool) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for id := range s {
			if holds(id) && !yield(id) {
				return
			}
		}
	})
}

func (s states) changed() []string {
	return s.ids(func(id string) bool { return len(s[id].Changes) > 0 })
}

func (s states) failed() []string {
	return s.ids(func(id string) bool { return s[id].Result != nil && !*s[id].Result })
}

// bare has the salt-master listen on all addresses, as it does wherever nobody says otherwise: that is what undoing
// leads back to.
func (h *host) bare() {
	h.t.Helper()
	h.sh("sed -i '/^interface: /d' /etc/salt/master; systemctl restart salt-master")
}

// putFormula installs the formula, and a pillar for it, where a master and salt-call --local find them.
func (h *host) putFormula(pillar map[string]any) {
	h.t.Helper()
	formula := filepath.Join(moduleRoot(h.t), "packaging/formula/saltclusterd")
	err := filepath.WalkDir(formula, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(formula, path)
		h.write("/srv/salt/saltclusterd/"+name, strings.TrimSuffix(string(text), "\n"))
		return err
	})
	require.NoError(h.t, err)
	h.write("/srv/pillar/top.sls", "base: {'*': [saltclusterd]}")
	h.putPillar(pillar)
}

func (h *host) putPillar(pillar map[string]any) {
	h.t.Helper()
	text, err := json.Marshal(map[string]any{"saltclusterd": pillar})
	require.NoError(h.t, err)
	h.write("/srv/pillar/saltclusterd.sls", string(text))
}

// call applies states without a master. What it prints anywhere must not hold the secret.
func (h *host) call(secret string, argv ...string) states {
	h.t.Helper()
	const said = "/tmp/salt-call.err"
	out, err := h.machine.sh(h.t.Context(),
		"salt-call --local -c /etc/salt --file-root /srv/salt --pillar-root /srv/pillar --out json --log-level info "+
			strings.Join(argv, " ")+" 2>"+said)
	log := h.sh("cat " + said)
	if secret != "" && strings.Contains(out+log, secret) {
		h.t.Errorf("salt-call %v shows the secret", argv)
	}
	var ret struct{ Local states }
	if jerr := json.Unmarshal([]byte(out), &ret); jerr != nil {
		h.t.Fatalf("salt-call %v: %v\n%s\n%s", argv, errors.Join(err, jerr), out, log)
	}
	for _, id := range ret.Local.failed() {
		h.t.Errorf("salt-call %v: %s: %v", argv, id, ret.Local[id].Comment)
	}
	if err != nil {
		h.t.Fatalf("salt-call %v: %v\n%s", argv, err, log)
	}
	return ret.Local
}

// TestFormula applies the formula to one host for each version of Salt: shown, tried without doing, done, done again,
// another version and another option, undone.
func TestFormula(t *testing.T) {
	for _, version := range slices.Sorted(maps.Keys(salts)) {
		t.Run(version, func(t *testing.T) {
			h := newHostOf(t, "m1", "10.99.0.11", version)
			h.setUpSalt()
			h.bare()
			h.sh("systemctl start salt-minion")
			h.await(90*time.Second, "the minion's key", "salt-key -l pre --out json | grep -q web1")
			h.sh("salt-key -y -a web1")
			h.await(90*time.Second, "the minion to answer", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
			h.formula(version)
		})
	}
}

func (h *host) formula(version string) {
	secret := h.sh("openssl rand -base64 32")
	pillar := map[string]any{
		"nodes": map[string]any{"m1": map[string]any{"minion": "web1", "address": h.addr,
			"config": map[string]any{"drain_time": "1s"}}}, "first": "m1",
		"config":  map[string]any{"cluster_id": "site", "drain_announce": "0s"},
		"package": map[string]any{"source": source(version, oldVersion)},
		"secret":  secret,
	}
	h.putFormula(pillar)
	h.shown(secret)

	// Tried: it would change much, and has changed nothing.
	before := h.sh(listing)
	tried := h.call(secret, "state.apply", "saltclusterd", "test=True")
	h.hasNot(difference(before, h.sh(listing)), "saltcluster")
	for _, want := range []string{"saltclusterd-install", "saltclusterd-config", "saltclusterd-config-secret",
		"saltclusterd-config-dropin"} {
		if !slices.ContainsFunc(tried.changed(), func(id string) bool { return strings.Contains(id, "_|-"+want+"_|-") }) {
			h.t.Errorf("%s is not announced; these are: %v", want, tried.changed())
		}
	}

	// Done, but for the restart of the salt-master, which is asked for.
	master := h.sh(masterPID)
	done := h.call(secret, "state.apply", "saltclusterd")
	check.Equal(h.t, h.sh(masterPID), master, "the salt-master was restarted")
	h.has(fmt.Sprint(done), "orch.restart")
	if s := h.sh("stat -c '%a %U' /etc/salt/saltclusterd.secret /etc/salt/saltclusterd.d/formula.conf"); s != "600 salt\n644 root" {
		h.t.Errorf("the secret and the options: %s", s)
	}
	check.Equal(h.t, h.sh("cat /etc/salt/saltclusterd.secret"), secret, "the secret is another one")
	h.hasNot(h.sh("cat /etc/salt/saltclusterd.d/formula.conf"), secret)
	restarted := h.call(secret, "state.apply", "saltclusterd", `pillar='{"saltclusterd": {"master": {"restart": true}}}'`)
	if now := h.sh(masterPID); now == master || len(restarted.changed()) != 1 {
		h.t.Errorf("only the restart was due: %v", restarted.changed())
	}
	h.await(90*time.Second, "the minion to answer", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
	h.call(secret, "state.apply", "saltclusterd.ready")
	h.has(h.sh("salt-run cluster.members --out json"), `"m1"`)

	// Done again: nothing is left, also in the eyes of setup.
	if again := h.call(secret, "state.apply", "saltclusterd").changed(); len(again) > 0 {
		h.t.Errorf("done again it changes %v", again)
	}
	var plan struct{ Files, Next []any }
	if err := json.Unmarshal([]byte(h.sh("saltclusterctl setup --dry-run --out json")), &plan); err != nil ||
		len(plan.Files)+len(plan.Next) > 0 {
		h.t.Errorf("saltclusterctl setup would do %+v, %v", plan, err)
	}

	// Another version and another option take over in place.
	conn := h.sh(connection)
	pillar["package"] = map[string]any{"source": source(version, newVersion)}
	pillar["config"] = map[string]any{"cluster_id": "site", "drain_announce": "0s", "log_level": "debug"}
	h.putPillar(pillar)
	h.call(secret, "state.apply", "saltclusterd")
	h.has(h.sh("saltclusterctl version; saltclusterctl config show --running | grep '^log_level  *debug '"),
		"saltclusterd   "+newVersion)
	if now := h.sh(connection); now != conn || conn == "" {
		h.t.Errorf("the minion's connection was %q and is %q", conn, now)
	}
	if again := h.call(secret, "state.apply", "saltclusterd").changed(); len(again) > 0 {
		h.t.Errorf("done again it changes %v", again)
	}

	// A mistake leaves the running process and the salt-master alone.
	pid := h.unit("MainPID")
	pillar["config"] = map[string]any{"cluster_id": "site", "no_such_option": 1}
	h.putPillar(pillar)
	h.has(h.fails("salt-call --local state.apply saltclusterd"), "no_such_option")
	if now := h.unit("MainPID"); now != pid || h.unit("ActiveState") != "active" {
		h.t.Errorf("after a mistake in the pillar: process %s was %s, %s", now, pid, h.unit("ActiveState"))
	}
	pillar["config"] = map[string]any{"cluster_id": "site"}
	h.putPillar(pillar)
	h.call(secret, "state.apply", "saltclusterd")

	// Undone: the salt-master has its ports and its minion.
	h.call(secret, "state.apply", "saltclusterd.clean")
	h.await(2*time.Minute, "the minion to answer", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
	h.has(h.sh("ss -Hltn 'sport = :4505'"), "0.0.0.0:4505")
	if left := h.sh("ls -d /etc/salt/saltclusterd.secret /etc/salt/saltclusterd.d/* /etc/salt/master.d/zz* /usr/bin/saltcluster* /var/lib/saltclusterd 2>/dev/null || :"); left != "" {
		h.t.Errorf("left: %s", left)
	}
	if again := h.call("", "state.apply", "saltclusterd.clean").changed(); len(again) > 0 {
		h.t.Errorf("undone again it changes %v", again)
	}
}

// shown: every state of the formula compiles, and the secret is not in what is compiled.
func (h *host) shown(secret string) {
	for _, sls := range []string{"install", "config", "service", "member", "master", "ready", "drain", "undrain",
		"haproxy", "clean"} {
		out := h.sh("salt-call --local --file-root /srv/salt --pillar-root /srv/pillar --out json state.show_sls saltclusterd." + sls + " 2>/dev/null")
		h.hasNot(out, secret, "Rendering SLS")
		var ret struct{ Local map[string]any }
		if err := json.Unmarshal([]byte(out), &ret); err != nil || len(ret.Local) == 0 {
			h.t.Errorf("%s: %v\n%s", sls, err, out)
		}
	}
}

func (h *host) hasNot(out string, unwanted ...string) {
	h.t.Helper()
	for _, w := range unwanted {
		if strings.Contains(out, w) {
			h.t.Errorf("%q is in\n%s", w, out)
		}
	}
}

// TestFormulaOrchestrated: three hosts with three versions of Salt and HAProxy in front become a cluster, are upgraded
// and lose a member, each by one command on the first; with join tokens, so that none of them knows a secret.
func TestFormulaOrchestrated(t *testing.T) {
	versions := []string{"3008.3", "3006.28", "3007.15"}
	addrs := []string{"10.99.0.11", "10.99.0.12", "10.99.0.13"}
	const front = "10.99.0.5"
	var hosts []*host
	var machines []*machine
	nodes := map[string]any{}
	for i, v := range versions {
		id := fmt.Sprintf("m%d", i+1)
		h := newHostOf(t, id, "", v)
		h.setUpSalt()
		h.bare()
		h.write("/etc/salt/minion", "master: "+front+"\nid: salt"+id+"\nacceptance_wait_time: 1\nrandom_reauth_delay: 1")
		hosts, machines = append(hosts, h), append(machines, h.machine)
		nodes[id] = map[string]any{"minion": "salt" + id, "address": addrs[i],
			"config": map[string]any{"interface": []string{addrs[i]}}}
	}
	require.NoError(t, link(t.Context(), machines, addrs))
	first := hosts[0]
	first.sh("ip address add " + front + "/24 dev lan")
	pillar := map[string]any{
		"nodes": nodes, "first": "m1", "config": map[string]any{"cluster_id": "site", "drain_announce": "1s",
			"drain_time": "1s"},
		"package": map[string]any{"source": source("3008.3", oldVersion)},
		"haproxy": map[string]any{"bind": []string{front}, "minions": 50},
	}
	first.putFormula(pillar)
	t.Cleanup(func() {
		for _, h := range hosts {
			if t.Failed() {
				log, _ := h.machine.sh(context.WithoutCancel(t.Context()),
					"journalctl --no-pager -u saltclusterd -u salt-master -u salt-minion -n 60")
				t.Log(log)
			}
		}
	})
	first.call("", "state.apply", "saltclusterd", `pillar='{"saltclusterd": {"master": {"restart": true}}}'`)
	first.call("", "state.apply", "saltclusterd.haproxy")
	for _, h := range hosts {
		h.sh("systemctl start salt-minion")
	}
	first.await(2*time.Minute, "three keys", "test $(salt-key -l pre --out json | grep -c saltm) = 3")
	first.sh("salt-key -y -A")
	first.await(2*time.Minute, "three minions", "test $(salt --timeout 5 '*' test.ping --out txt | grep -c True) = 3")

	first.orchestrate("deploy")
	first.has(first.sh("saltclusterctl members --out json"), `"m1"`, `"m2"`, `"m3"`)
	first.has(first.sh("saltclusterctl token list --out json"), `"used_by": "m2"`, `"used_by": "m3"`)
	for i, h := range hosts {
		h.has(h.sh("cat /etc/salt/master.d/zz-saltclusterd.conf"), fmt.Sprintf("master_id: 'm%d'", i+1))
		h.await(2*time.Minute, "three minions", "test $(salt --timeout 5 '*' test.ping --out txt | grep -c True) = 3")
		if left := h.sh("ls /etc/salt/saltclusterd.join-token /etc/salt/saltclusterd.secret 2>/dev/null || :"); left != "" {
			t.Errorf("left: %s", left)
		}
	}

	pillar["package"] = map[string]any{"source": source("3008.3", newVersion)}
	first.putPillar(pillar)
	began := first.sh("date +'%F %T'")
	first.orchestrate("upgrade")
	for i, h := range hosts {
		h.has(h.sh("saltclusterctl version"), "saltclusterd   "+newVersion)
		drained := h.sh("journalctl --no-pager -o short-iso -u saltclusterd --since '"+began+"' | grep -c 'msg=drain ' || :") != "0"
		check.Equal(t, drained, (i > 0), "m", i+1, "was drained")
	}
	first.await(2*time.Minute, "three minions", "test $(salt --timeout 5 '*' test.ping --out txt | grep -c True) = 3")

	first.sh("salt --timeout 300 saltm3 state.apply saltclusterd.clean")
	hosts[2].has(hosts[2].sh("ss -Hltn 'sport = :4505'"), "0.0.0.0:4505")
	first.hasNot(first.sh("saltclusterctl members --out json"), `"m3"`)
	first.sh("saltclusterctl status --check")
}

// orchestrate runs one of the formula's orchestrations, none of whose steps may fail.
func (h *host) orchestrate(name string) {
	h.t.Helper()
	out, err := h.machine.sh(h.t.Context(), "salt-run state.orchestrate saltclusterd.orch."+name+" 2>&1")
	h.t.Log(out)
	require.NoError(h.t, err)
	h.has(out, "Failed:    0")
	if strings.Contains(out, "Result: False") {
		h.t.Fatal("a step failed")
	}
}
