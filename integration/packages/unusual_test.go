//go:build integration

package packages

import (
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

// unusual is a salt-master that listens to the world, has its configuration, keys, caches and roots elsewhere, runs as
// an account of the operator's own, and is told so by drop-ins in a directory of another name; all of it in a directory
// that few may enter.
const unusual = `useradd --system --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin ops
mkdir -p '/data/my states' /data/keys /data/cache /data/log /data/pillar /opt/salt/etc/conf.d /etc/salt
chown -R ops:ops /data
chgrp ops /etc/salt; chmod 750 /etc/salt /data
cat > /opt/salt/etc/master <<'END'
default_include: conf.d/*.conf
worker_threads: 3
END
cat > /opt/salt/etc/conf.d/10-site.conf <<'END'
user: ops
pki_dir: /data/keys
cachedir: /data/cache
sock_dir: /data/sock
log_file: /data/log/master
key_logfile: /data/log/key
file_roots: {base: [/data/my states]}
pillar_roots: {base: [/data/pillar]}
END
cat > /etc/systemd/system/salt-master.service <<'END'
[Service]
Type=notify
NotifyAccess=all
LimitNOFILE=100000
ExecStart=/usr/local/bin/salt-master -c /opt/salt/etc
[Install]
WantedBy=multi-user.target
END
printf '[Service]\nKillMode=process\nExecStart=/usr/local/bin/salt-minion\n' > /etc/systemd/system/salt-minion.service
systemctl daemon-reload; systemctl start salt-master salt-minion`

const (
	ping      = "salt -c /opt/salt/etc --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'"
	masterPID = "systemctl show --property=MainPID --value salt-master"
)

// TestUnusual adopts that master while a minion is connected to it, upgrades, and leaves it again as it was.
func TestUnusual(t *testing.T) {
	h := newHost(t)
	h.write("/etc/salt/minion", "master: "+h.addr+"\nid: web1\nacceptance_wait_time: 1\nrandom_reauth_delay: 1")
	h.sh(unusual)
	h.await(90*time.Second, "the minion's key", "salt-key -c /opt/salt/etc -l pre --out json | grep -q web1")
	h.sh("salt-key -c /opt/salt/etc -y -a web1")
	h.await(90*time.Second, "the minion to answer", ping)
	for _, s := range []struct {
		name string
		test func(*host)
	}{
		{"install beside it", (*host).installBeside},
		{"adopt", (*host).adopt},
		{"upgrade and reload", (*host).upgradeAndReload},
		{"purge and leave", (*host).purgeAndLeave},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(&host{h.machine, t}) }) {
			log, _ := h.machine.sh(t.Context(), "journalctl --no-pager -u saltclusterd -u salt-master -n 80")
			t.Fatal(log)
		}
	}
}

// installBeside: nothing of Salt's changes, not even the mode of the directory that the configuration is put into.
func (h *host) installBeside() {
	pid := h.sh(masterPID)
	h.sh("apt-get install -y " + h.deb(oldVersion))
	check.Equal(h.t, h.sh(masterPID), pid, "the salt-master was restarted")
	check.Equal(h.t, h.sh("stat -c '%a %U:%G' /etc/salt"), "750 root:ops", "/etc/salt")
	h.sh(ping)
}

// adopt: what the generator finds is where the master's configuration says; the secret is in a file of the directory.
func (h *host) adopt() {
	h.sh("touch /tmp/before")
	h.write("/etc/salt/saltclusterd.d/site.conf",
		"id: m1\ncluster_id: site\nsalt_config: /opt/salt/etc/master\ndrain_announce: 0s\ndrain_time: 1s")
	h.sh(`umask 027; echo "cluster_secret: $(openssl rand -base64 32)" > /etc/salt/saltclusterd.d/secret.conf; chgrp ops /etc/salt/saltclusterd.d/secret.conf`)
	h.sh("sed 's/^#keys/keys/' /usr/share/doc/saltclusterd/examples/master.conf > /opt/salt/etc/conf.d/zz-saltclusterd.conf")
	h.write("/etc/systemd/system/saltclusterd.service.d/files.conf", "[Service]\nLimitNOFILE=100000")
	h.has(h.sh("saltclusterctl config check"), "ok")
	h.sh("systemctl enable --now saltclusterd; systemctl restart salt-master")
	h.has(h.unit("User"), "ops")
	h.has(h.unit("LimitNOFILE"), "100000")
	h.has(h.unit("ReadWritePaths"), "/data/keys", "/data/cache", "/data/my states", "/opt/salt/etc")
	h.sh("saltclusterctl bootstrap")
	h.await(90*time.Second, "the minion to answer", ping)
	inside := "nsenter --mount --root --wd --target " + h.unit("MainPID") + " "
	h.has(h.fails(inside+"touch /data/log/x"), "Read-only file system")
	h.sh(inside + "touch '/data/my states/x' /data/keys/x; rm '/data/my states/x' /data/keys/x")
	if strange := h.sh("find /data /var/lib/saltclusterd -newer /tmp/before -not -user ops -not -name .root_key"); strange != "" {
		h.t.Errorf("of other accounts: %s", strange)
	}
}

// upgradeAndReload: the minion keeps its connection through a newer package and three reloads, the master its process.
func (h *host) upgradeAndReload() {
	conn, pid := h.sh(connection), h.sh(masterPID)
	h.sh("apt-get install -y " + h.deb(newVersion))
	h.has(h.sh("saltclusterctl version"), "saltclusterd   "+newVersion)
	for range 3 {
		before := h.unit("MainPID")
		h.sh("systemctl reload saltclusterd")
		if now := h.unit("MainPID"); now == before {
			h.t.Error("a reload did not replace the process")
		}
		h.sh(ping)
	}
	if now := h.sh(connection); now != conn || conn == "" {
		h.t.Errorf("the minion's connection was %q and is %q", conn, now)
	}
	if now := h.sh(masterPID); now != pid || h.unit("NRestarts") != "0" {
		h.t.Errorf("the salt-master's process was %s and is %s; %s restarts of saltclusterd", pid, now, h.unit("NRestarts"))
	}
}

// purgeAndLeave: without its drop-in the master is what it was before, with the keys it has.
func (h *host) purgeAndLeave() {
	const keys = "sha256sum /data/keys/master.pem /data/keys/minions/web1 /opt/salt/etc/master /opt/salt/etc/conf.d/10-site.conf"
	pid, before := h.sh(masterPID), h.sh(keys)
	// a process that has taken over lets minions go, too
	h.sh("systemctl reload saltclusterd; systemctl stop saltclusterd")
	h.has(h.unit("Result")+" "+h.unit("ExecMainStatus"), "success 0")
	h.sh("systemctl start saltclusterd; systemctl reload saltclusterd")
	h.has(h.sh("apt-get purge -y saltclusterd 2>&1"), "listens where its option interface says")
	check.Equal(h.t, h.sh(masterPID), pid, "the salt-master was restarted")
	h.sh("rm /opt/salt/etc/conf.d/zz-saltclusterd.conf; systemctl restart salt-master")
	h.await(2*time.Minute, "the minion to answer", ping)
	if now := h.sh(keys); now != before {
		h.t.Errorf("Salt's own files were changed:\n%s\n%s", before, now)
	}
	if killed := h.sh("journalctl --no-pager -u saltclusterd | grep -i 'sigkill\\|failed' || :"); killed != "" {
		h.t.Errorf("it did not stop in good order:\n%s", killed)
	}
	left := h.sh("find / -xdev -path /root -prune -o -path /data -prune -o -path /proc -prune -o -path /packages -prune -o -path /sys -prune -o -iname '*saltcluster*' -print; getent passwd saltclusterd || :; systemctl --no-pager --all list-units 'saltcluster*' | grep saltclusterd || :")
	if strings.TrimSpace(left) != "" {
		h.t.Errorf("left: %s", left)
	}
	check.Equal(h.t, h.sh("stat -c '%a %U:%G' /etc/salt"), "750 root:ops", "/etc/salt")
}
