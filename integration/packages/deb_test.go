//go:build integration

package packages

import (
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

// configureSalt gives the machine a master that runs as the user salt, as Salt's own packages do, and a minion.
func (h *host) configureSalt() {
	h.sh("useradd --system --user-group --home-dir /var/lib/salt --no-create-home --shell /usr/sbin/nologin salt")
	h.write("/etc/salt/master", "user: salt\ninterface: 127.0.0.1\nworker_threads: 3")
	h.write("/etc/salt/minion", "master: "+h.addr+"\nid: web1\nacceptance_wait_time: 1\nrandom_reauth_delay: 1")
	h.sh(`mkdir -p /srv/salt /srv/pillar /etc/salt/pki/master /var/cache/salt/master /var/log/salt
		chown -R salt: /srv/salt /srv/pillar /etc/salt/pki/master /var/cache/salt/master /var/log/salt`)
}

// setUpSalt is configureSalt, with units of systemd's, and starts the master.
func (h *host) setUpSalt() {
	h.configureSalt()
	h.write("/etc/systemd/system/salt-master.service",
		"[Unit]\nAfter=network.target\n[Service]\nType=notify\nNotifyAccess=all\nLimitNOFILE=100000\nExecStart=/usr/local/bin/salt-master\n[Install]\nWantedBy=multi-user.target")
	h.write("/etc/systemd/system/salt-minion.service",
		"[Service]\nKillMode=process\nExecStart=/usr/local/bin/salt-minion\n")
	h.sh("systemctl daemon-reload; systemctl start salt-master")
}

// TestDeb is the life of a deb: installed beside a running master, upgraded under a minion, removed, installed again,
// purged.
func TestDeb(t *testing.T) {
	h := newHost(t)
	h.setUpSalt()
	h.await(time.Minute, "the master's keys", "test -s /etc/salt/pki/master/master.pem")
	h.sh("systemctl stop salt-master; rm -f /etc/salt/*.d/_schedule.conf; find /var/run/salt -type s -delete")
	before := h.sh(listing)
	for _, s := range []struct {
		name string
		test func(*host)
	}{
		{"install", (*host).install},
		{"start", (*host).start},
		{"closed", (*host).closed},
		{"upgrade", (*host).upgrade},
		{"reload", (*host).reload},
		{"watchdog", (*host).watchdog},
		{"remove", (*host).remove},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(&host{h.machine, t}) }) {
			log, _ := h.machine.sh(t.Context(), "journalctl --no-pager -u saltclusterd -u salt-master -n 80")
			t.Fatal(log)
		}
	}
	h.sh("systemctl kill --signal=KILL salt-minion || :; systemctl stop salt-minion salt-master; rm -rf /etc/salt/pki/minion /etc/salt/minion_id /etc/salt/minion.d /var/cache/salt/minion /var/run/salt")
	h.purge(before)
}

func (h *host) deb(version string) string {
	return "/packages/" + version + "/saltclusterd_" + version + "_amd64.deb"
}

// install: nothing runs before it is configured, and the unit knows the master's user.
func (h *host) install() {
	h.sh("apt-get install -y " + h.deb(oldVersion))
	if s := h.unit("ActiveState") + " " + h.unit("UnitFileState"); s != "inactive disabled" {
		h.t.Errorf("after the installation: %s", s)
	}
	if u := h.unit("User"); u != "salt" {
		h.t.Errorf("runs as %q\n%s", u, h.sh("systemctl cat saltclusterd.service"))
	}
	h.has(h.sh("saltclusterd --version; saltclusterctl version; saltclusterctl --help"), "saltclusterd "+oldVersion,
		"saltclusterctl "+oldVersion, "EXIT CODES")
	h.has(h.fails("saltclusterd --check"), "cluster_id", "cluster_secret")
	h.has(h.sh("getent passwd saltclusterd; /usr/lib/systemd/systemd-sysctl --cat-config; dpkg --verify saltclusterd"),
		"/var/lib/saltclusterd", "fs.inotify.max_user_watches")
	for _, page := range []string{"man1/saltclusterctl.1", "man5/saltclusterd.conf.5", "man8/saltclusterd.8"} {
		if complaints := h.sh("zcat /usr/share/man/" + page +
			".gz | groff -man -Tutf8 -ww 2>&1 >/dev/null"); complaints != "" {
			h.t.Errorf("%s: %s", page, complaints)
		}
	}
	h.sh(`bash -c '. /usr/share/bash-completion/completions/saltclusterctl; COMP_WORDS=(saltclusterctl stat); COMP_CWORD=1; _saltclusterctl; test "${COMPREPLY[*]}" = status'`)
	const examples = "/usr/share/doc/saltclusterd/examples/"
	h.sh("haproxy -c -f " + examples + "haproxy.cfg")
	// With a script in its configuration keepalived 2.2 ends a test by a signal to all of its process group: what counts
	// is that it says nothing.
	h.sh("ip link add eth0 type veth peer name eth1; setsid --wait keepalived --config-test=/tmp/said --use-file " +
		examples + "keepalived.conf || :; ip link del eth0; test -f /tmp/said; test ! -s /tmp/said")
	h.has(h.sh("cat /usr/share/doc/saltclusterd/sbom.cdx.json"), "CycloneDX", "pkg:golang/saltclusterd@"+oldVersion)
	if left := h.sh("systemd-analyze verify --man=no saltclusterd.service 2>&1 | grep saltclusterd || :"); left != "" {
		h.t.Errorf("systemd-analyze verify: %s", left)
	}
}

// start: with the secret as a credential, a cluster of one, and a minion that answers.
func (h *host) start() {
	h.write("/etc/salt/saltclusterd.d/site.conf", "id: m1\ncluster_id: site\ndrain_announce: 0s\ndrain_time: 1s")
	h.sh("install -d -m 700 /etc/credstore; (umask 077; head -c 24 /dev/urandom | base64 > /etc/credstore/saltclusterd.cluster_secret)")
	h.sh("mkdir /etc/salt/master.d; sed 's/^#keys/keys/' /usr/share/doc/saltclusterd/examples/master.conf > /etc/salt/master.d/zz-saltclusterd.conf")
	h.has(h.sh("saltclusterctl config check"), "ok")
	h.sh("systemctl enable --now saltclusterd.service; systemctl start salt-master")
	h.has(h.sh("ps -o user= -p "+h.unit("MainPID")), "salt")
	h.sh("saltclusterctl bootstrap")
	h.sh("systemctl start salt-minion")
	h.await(90*time.Second, "the minion's key", "salt-key -l pre --out json | grep -q web1")
	h.sh("salt-key -y -a web1")
	h.await(90*time.Second, "the minion to answer", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
	h.has(h.sh("salt-run cluster.members --out json"), `"voters": [`, `"m1"`)
	check.Equal(h.t, h.unit("NRestarts"), "0", "restarts")
}

// closed: what the unit promises of its process.
func (h *host) closed() {
	pid := h.unit("MainPID")
	h.has(h.sh("cat /proc/"+pid+"/status"), "NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000")
	inside := "nsenter --mount --root --wd --target " + pid + " "
	h.has(h.fails(inside+"touch /usr/bin/x"), "Read-only file system")
	h.has(h.fails(inside+"touch /etc/passwd"), "Read-only file system")
	h.sh(inside + "touch /etc/salt/x /var/cache/salt/master/x /srv/salt/x; rm /etc/salt/x /var/cache/salt/master/x /srv/salt/x")
	h.t.Log(h.sh("systemd-analyze --no-pager security saltclusterd.service | tail -n 1"))
}

// connection is the minion's to 4505, by the port it has on its side.
const connection = `ss -Htn state established dst :4505 | awk '$4 ~ /:4505$/ && $4 !~ /^127/ {print $3}' | sort`

// upgrade: the new package is served by the new program, and the minion keeps its connection.
func (h *host) upgrade() {
	pid, conn := h.unit("MainPID"), h.sh(connection)
	if conn == "" {
		h.t.Fatalf("no connection of the minion:\n%s", h.sh("ss -tn"))
	}
	h.sh("apt-get install -y " + h.deb(newVersion))
	if now := h.unit("MainPID"); now == pid || h.unit("ActiveState") != "active" || h.unit("NRestarts") != "0" {
		h.t.Errorf("main process %s was %s, %s", now, pid, h.unit("ActiveState"))
	}
	h.has(h.sh("saltclusterctl version"), "saltclusterd   "+newVersion)
	if now := h.sh(connection); now != conn {
		h.t.Errorf("the minion's connection was %q and is %q", conn, now)
	}
	h.sh("salt --timeout 20 web1 test.ping --out txt | grep -q 'web1: True'")
	h.has(h.sh("cat /etc/salt/saltclusterd.d/site.conf"), "cluster_id: site")
}

// reload fails when the configuration is not valid, and the running process goes on.
func (h *host) reload() {
	pid := h.unit("MainPID")
	h.write("/etc/salt/saltclusterd.d/zz-bad.conf", "no_such_option: 1")
	h.fails("systemctl reload saltclusterd.service")
	h.has(h.unit("StatusText"), "no_such_option")
	if now := h.unit("MainPID"); now != pid || h.unit("ActiveState") != "active" {
		h.t.Errorf("main process %s was %s, %s", now, pid, h.unit("ActiveState"))
	}
	h.sh("rm /etc/salt/saltclusterd.d/zz-bad.conf; systemctl reload saltclusterd.service")
	if now := h.unit("MainPID"); now == pid {
		h.t.Error("a reload did not replace the process")
	}
	h.sh("salt --timeout 20 web1 test.ping --out txt | grep -q 'web1: True'")
}

// watchdog: a process that stands still is replaced, also one that has taken over from another.
func (h *host) watchdog() {
	h.write("/run/systemd/system/saltclusterd.service.d/watchdog.conf", "[Service]\nWatchdogSec=6")
	h.sh("systemctl daemon-reload; systemctl restart saltclusterd.service; saltclusterctl status >/dev/null")
	h.await(time.Minute, "a node that serves", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
	h.sh("systemctl reload saltclusterd.service; sleep 10")
	pid := h.unit("MainPID")
	if n := h.unit("NRestarts"); n != "0" {
		h.t.Errorf("%s restarts of a process that lives", n)
	}
	h.sh("kill -STOP " + pid)
	h.await(time.Minute, "another process",
		`p=$(systemctl show --property=MainPID --value saltclusterd); test "$p" != 0 && test "$p" != `+pid)
	h.await(time.Minute, "a node that serves", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
	h.sh("rm -r /run/systemd/system/saltclusterd.service.d; systemctl daemon-reload")
}

// remove: the daemon stops in order; configuration and state stay, and Salt's own things.
func (h *host) remove() {
	const mine = "cat /etc/salt/pki/master/master.pem /etc/salt/pki/master/minions/web1 /etc/salt/master | sha256sum"
	keys, master := h.sh(mine), h.sh("systemctl show --property=MainPID --value salt-master")
	// as Salt does as root
	h.sh("cd /usr/share/saltclusterd; mkdir -p runners/__pycache__ wheel/__pycache__; touch runners/__pycache__/cluster.pyc wheel/__pycache__/minions.pyc")
	out := h.sh("apt-get remove -y saltclusterd 2>&1")
	h.has(out, "listens on loopback only")
	if left := h.sh("ls -d /usr/share/saltclusterd /usr/bin/saltcluster* /etc/systemd/system/*/saltclusterd.service /usr/lib/systemd/system*/saltclusterd* 2>/dev/null || :; pgrep -x saltclusterd || :"); left != "" {
		h.t.Errorf("left: %s", left)
	}
	h.sh("test -s /etc/salt/saltclusterd; test -d /var/lib/saltclusterd/raft")
	check.Equal(h.t, h.sh(mine), keys, "Salt's own files were changed")
	if now := h.sh("systemctl show --property=MainPID --value salt-master"); now != master {
		h.t.Error("the salt-master was restarted")
	}
	h.sh("apt-get install -y " + h.deb(newVersion) + "; systemctl start saltclusterd.service")
	h.await(time.Minute, "the cluster it knew", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'")
}

// purge: nothing is left, but what Salt and the operator made.
func (h *host) purge(before string) {
	h.sh("apt-get purge -y saltclusterd 2>&1; rm -rf /etc/salt/master.d")
	diff := difference(before, h.sh(listing))
	var left []string
	for line := range strings.Lines(diff) {
		switch {
		case strings.Contains(line, "/etc/salt/pki/master"), strings.Contains(line, "/etc/credstore"):
		default:
			left = append(left, line)
		}
	}
	if len(left) > 0 {
		h.t.Errorf("what is left, and what is missing:\n%s", strings.Join(left, ""))
	}
}
