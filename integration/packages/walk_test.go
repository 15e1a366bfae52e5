//go:build integration

package packages

import (
	"context"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// walkFront is the address of HAProxy, which has a host of its own.
const walkFront = "10.99.0.5"

// walk is what docs/tutorial/quickstart.md is about: three hosts with salt-masters of three versions, and one with HAProxy and
// four minions.
type walk struct {
	t     *testing.T
	lb    *host
	nodes []*host
	addrs []string
}

// setUpPackagedSalt gives a host a master as Salt's own packages do: it runs as the user salt and listens everywhere,
// and /srv belongs to root.
func (h *host) setUpPackagedSalt() {
	h.setUpSalt()
	h.bare()
	h.sh("chown -R root: /srv/salt /srv/pillar; systemctl enable salt-master")
}

func newWalk(t *testing.T) *walk {
	w := &walk{t: t, lb: newHostOf(t, "lb", "", "3007.15"), addrs: []string{"10.99.0.11", "10.99.0.12", "10.99.0.13"}}
	machines, addrs := []*machine{w.lb.machine}, append([]string{walkFront}, w.addrs...)
	for i, version := range []string{"3007.15", "3006.28", "3008.3"} {
		h := newHostOf(t, "m"+string(rune('1'+i)), "", version)
		w.nodes, machines = append(w.nodes, h), append(machines, h.machine)
	}
	require.NoError(t, link(t.Context(), machines, addrs))
	for _, h := range w.nodes {
		h.setUpPackagedSalt()
	}
	w.nodes[2].sh("rm -r /srv/salt /srv/pillar") // no package of Salt creates them
	t.Cleanup(func() {
		for _, h := range w.nodes {
			if t.Failed() {
				log, _ := h.machine.sh(context.WithoutCancel(t.Context()),
					"journalctl --no-pager -u saltclusterd -u salt-master -n 60")
				t.Log(log)
			}
		}
	})
	for _, id := range []string{"web1", "web2", "web3"} {
		w.minion(id, w.addrs[0])
	}
	return w
}

// minion starts one, or starts it again, with this master, on HAProxy's host.
func (w *walk) minion(id, master string) {
	dir := "/etc/salt-" + id
	w.lb.write(dir+"/minion",
		"master: "+master+"\nid: "+id+"\nroot_dir: /var/"+id+"\npki_dir: "+dir+"/pki\nsock_dir: /run/"+id+
			"\nacceptance_wait_time: 1\nrandom_reauth_delay: 1")
	w.lb.sh("mkdir -p /var/" + id + "; printf '[Service]\\nKillMode=process\\nExecStart=/usr/local/bin/salt-minion -c " +
		dir +
		"\\n' > /etc/systemd/system/" + id + ".service; systemctl daemon-reload; systemctl restart " + id)
}

// answer waits until so many minions answer this node.
func (w *walk) answer(h *host, n string) {
	w.t.Helper()
	h.await(3*time.Minute, n+" minions to answer",
		"test $(salt --timeout 5 '*' test.ping --out txt 2>/dev/null | grep -c ': True') = "+n)
}

// balance gives HAProxy what a node prints.
func (w *walk) balance(from *host, flags string) {
	w.t.Helper()
	text := from.sh("saltclusterctl haproxy --minions 50 " + flags)
	w.lb.write("/etc/haproxy/haproxy.cfg", text)
	w.lb.sh("systemctl reload-or-restart haproxy")
}

// TestWalk is a newcomer's way through the packages and the guides, in and out again, with roots that belong to root as
// Salt's packages leave them.
func TestWalk(t *testing.T) {
	w := newWalk(t)
	m1, m2, m3 := w.nodes[0], w.nodes[1], w.nodes[2]
	m1.await(2*time.Minute, "three keys", "test $(salt-key -l pre --out json | grep -c web) = 3")
	m1.sh("salt-key -y -A; echo 'base: {}' > /srv/salt/top.sls")
	w.answer(m1, "3")

	for _, h := range w.nodes {
		h.sh("apt-get install -y " + h.deb(oldVersion))
	}
	has := m1.sh("saltclusterctl setup --check --node m1 --cluster-id production")
	m1.has(has, "nothing was changed", "the user salt may not write there", "1. chown -R salt: /srv/pillar",
		"2. chown -R salt: /srv/salt", "3 connected now")
	m1.has(m1.sh("saltclusterctl setup --yes --start --node m1 --cluster-id production; saltclusterctl status --check"),
		"leader m1")
	m1.has(m1.sh("saltclusterctl setup"), "nothing is left to do")
	w.answer(m1, "3")

	for i, h := range w.nodes[1:] {
		id := "m" + string(rune('2'+i))
		token := m1.sh("saltclusterctl token create --node " + id +
			" --file /root/token >/dev/null 2>&1; cat /root/token; rm /root/token")
		h.sh("umask 077; echo '" + token + "' > /root/token")
		if id == "m3" { // as the quickstart has it; m2 takes one step after the other
			h.has(h.sh("saltclusterctl setup --yes --start --token-file /root/token --join 10.99.0.11 --node m3 "+
				"--cluster-id production"),
				"m3  10.99.0.13")
			continue
		}
		h.sh("saltclusterctl setup --yes --join 10.99.0.11 --node " + id +
			" --cluster-id production; systemctl enable --now saltclusterd")
		h.sh("saltclusterctl join 10.99.0.11 --token-file /root/token --wait=false; systemctl restart salt-master")
		h.await(time.Minute, "roots that it may not write in to be said",
			"saltclusterctl roots status | grep -q 'may not write there'")
		if n := h.unit("NRestarts"); n != "0" {
			t.Errorf("%s: %s restarts", id, n)
		}
		m1.has(h.fails("saltclusterctl doctor"), "chown -R salt: /srv/salt")
		h.sh("chown -R salt: /srv/salt /srv/pillar")
	}
	for _, h := range w.nodes {
		h.await(3*time.Minute, "a healthy node",
			"saltclusterctl status --check && saltclusterctl members --wide | grep -c 'voter .* yes$' | grep -q 3")
		w.answer(h, "3")
		h.await(time.Minute, "the states of m1", "grep -q base /srv/salt/top.sls && test $(stat -c %U /srv/salt) = salt")
	}

	w.balance(m1, "--check")
	for _, id := range []string{"web1", "web2", "web3", "web4"} {
		w.minion(id, walkFront)
	}
	m2.await(2*time.Minute, "a new minion's key", "salt-key -l pre --out json | grep -q web4")
	m2.sh("salt-key -y -a web4")
	for _, h := range w.nodes {
		w.answer(h, "4")
	}
	m1.has(m1.sh("saltclusterctl doctor --via "+walkFront), "0 failures")

	m1.has(m1.sh("saltclusterctl drain m2"), "m2 is drained")
	w.answer(m2, "4")
	m3.has(m3.sh("saltclusterctl undrain m2"), "m2 takes minions")

	for _, h := range w.nodes {
		h.sh("apt-get install -y " + h.deb(newVersion))
		h.has(h.sh("saltclusterctl version"), "saltclusterd   "+newVersion)
		h.await(2*time.Minute, "a healthy node", "saltclusterctl status --check")
	}
	w.answer(m3, "4")

	said := m3.sh("saltclusterctl remove --yes m3 2>&1") // by itself, as leave does
	if strings.Contains(said, "not all of its minions") {
		t.Errorf("remove: %s", said)
	}
	w.leave(m3, "0")
	w.balance(m1, "--check")
	w.leave(m2, "0")
	w.answer(m1, "4")

	w.balance(m1, "--bare --check")
	w.leave(m1, "4")
}

// leave gives the ports back to a node's master, as leave says it, and purges the package: of what is left leave has
// said how to remove it.
func (w *walk) leave(h *host, minions string) {
	w.t.Helper()
	said := h.sh("saltclusterctl leave --restore-master --yes 2>&1")
	h.has(said, "removed: /etc/salt/master.d/zz-saltclusterd.conf", "systemctl disable --now saltclusterd")
	for line := range strings.Lines(said) {
		if _, area, ok := strings.Cut(line, "rm -r "); ok {
			area, _, _ = strings.Cut(area, ": ")
			h.sh("rm -r " + area)
		}
	}
	h.sh("systemctl disable --now saltclusterd; systemctl restart salt-master")
	w.answer(h, minions)
	h.has(h.sh("salt-key -l acc --out json"), "web1", "web4")
	h.sh("apt-get purge -y saltclusterd")
	left := h.sh("find / -xdev \\( -path /root -o -path /packages -o -path /proc -o -path /sys -o -path /etc/salt/pki -o -path /var/cache/salt \\) -prune -o -iname '*saltcluster*' -print")
	if left != "" {
		w.t.Errorf("left: %s", left)
	}
}
