//go:build integration

package packages

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"saltclusterd/integration/check"
)

// TestRpm is the life of an rpm, with rpm itself, on a machine whose systemd reads the unit all the same.
func TestRpm(t *testing.T) {
	h := newHost(t)
	t.Cleanup(func() { // before the machine's own
		if t.Failed() {
			log, _ := h.machine.sh(context.Background(), "journalctl --no-pager -n 60")
			t.Log(log)
		}
	})
	rpm := func(version string) string {
		return "/packages/" + version + "/saltclusterd-" + version + "-1.x86_64.rpm"
	}
	h.has(h.sh("rpm --checksig --nosignature "+rpm(oldVersion)), "OK")
	h.has(h.sh("rpm -qpi "+rpm(oldVersion)), "Version     : "+oldVersion, "License     : Apache-2.0",
		"Architecture: x86_64")
	h.has(h.sh("rpm -qpl "+rpm(oldVersion)), "/usr/bin/saltclusterd\n", "/usr/share/zsh/site-functions/_saltclusterctl",
		"/usr/lib/systemd/system/saltclusterd.service")
	h.has(h.sh("rpm -qpc "+rpm(oldVersion)), "/etc/salt/saltclusterd")
	r := strings.Fields(h.sh("rpm -qpR " + rpm(oldVersion) + " | grep -e libc -e libssl || :"))
	check.EqualSlices(t, r, []string{"libc.so.6()(64bit)"}, "requires")
	h.has(h.sh("rpm -qp --recommends "+rpm(oldVersion)), "libcrypto.so.3()(64bit)")
	h.sh("mkdir -p /var/lib/rpm; rpm --initdb")
	before := h.sh(listing)
	h.sh("rpm -i --nodeps " + rpm(oldVersion))
	h.sh("rpm -V --nodeps saltclusterd; saltclusterd --version | grep -qF " + oldVersion)
	if s := h.unit("ActiveState") + " " + h.unit("UnitFileState"); s != "inactive disabled" {
		t.Errorf("after the installation: %s", s)
	}
	// Without a salt-master: a witness, as the account that the package made.
	h.write("/etc/salt/saltclusterd.d/site.conf", "id: w1\ncluster_id: site\ncluster_witness: True")
	h.sh("install -d -m 700 /etc/credstore; (umask 077; head -c 24 /dev/urandom | base64 > /etc/credstore/saltclusterd.cluster_secret)")
	h.sh("echo '#mine' >> /etc/salt/saltclusterd; systemctl daemon-reload; systemctl start saltclusterd.service")
	h.has(h.sh("ps -o user:20= -p "+h.unit("MainPID")), "saltclusterd")
	started := h.sh("saltclusterctl version")
	h.has(started, oldVersion)
	h.sh("rpm -U --nodeps " + rpm(newVersion))
	h.has(h.sh("saltclusterctl version; cat /etc/salt/saltclusterd"), "saltclusterd   "+newVersion, "#mine")
	check.Equal(t, h.unit("NRestarts"), "0", "restarts")
	h.sh("rpm -e saltclusterd")
	const clear = "rm -rf /var/lib/saltclusterd /etc/salt /etc/credstore; userdel saltclusterd"
	h.sh(clear)
	check.Equal(t, difference(before, h.sh(listing)), "", "what is left, and what is missing")
	h.archive()
	h.sh(clear + "; rm -r /usr/share/saltclusterd /usr/share/doc/saltclusterd")
	for line := range strings.Lines(difference(before, h.sh(listing))) {
		if !strings.HasSuffix(line, " 755 root:root\n") { // directories of the system's that were not there before
			t.Errorf("what is left, and what is missing: %s", line)
		}
	}
}

// archive: the tar.gz by hand, as docs/how-to/install.md has it.
func (h *host) archive() {
	name := func(version string) string {
		return "/packages/" + version + "/saltclusterd-" + version + "-linux-amd64.tar.gz"
	}
	h.sh("tar --strip-components=1 -C / -xzf " + name(oldVersion) + "; systemd-sysusers; systemctl daemon-reload")
	h.write("/etc/salt/saltclusterd.d/site.conf", "id: w1\ncluster_id: site\ncluster_witness: True")
	h.sh("install -d -m 700 /etc/credstore; (umask 077; openssl rand -base64 32 > /etc/credstore/saltclusterd.cluster_secret)")
	h.sh("echo '#mine' >> /etc/salt/saltclusterd; systemctl enable --now saltclusterd")
	h.has(h.sh("ps -o user:20= -p "+h.unit("MainPID")+"; saltclusterctl version"), "saltclusterd", oldVersion)
	h.sh("tar --strip-components=1 -C / -xzf " + name(newVersion) +
		" --exclude='*/etc/*'; systemctl daemon-reload; systemctl reload saltclusterd")
	h.has(h.sh("saltclusterctl version; cat /etc/salt/saltclusterd"), "saltclusterd   "+newVersion, "#mine")
	h.sh("systemctl disable --now saltclusterd; tar -tzf " + name(newVersion) +
		" | cut -d/ -f2- | grep -v '/$' | (cd /; xargs -d '\\n' rm -f); systemctl daemon-reload")
}

// The archive for arm64 holds programs for it, which need nothing.
func TestArm64(t *testing.T) {
	needLong(t)
	out := t.TempDir()
	build(t.Context(), t, moduleRoot(t), out, oldVersion, "-arch", "arm64", "-format", "tar.gz,deb")
	script := `cd "$1"; tar -xzf *.tar.gz; cd saltclusterd-*/usr/bin; file -b saltclusterd saltclusterctl 2>/dev/null || head -c 20 saltclusterd | od -An -tx1 | sed -n 2p; dpkg-deb --field "$1"/*.deb Architecture`
	text, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script, "sh", out).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "arm64") || !strings.Contains(string(text), "aarch64") &&
		!strings.Contains(string(text), "02 00 b7 00") {
		t.Errorf("%v\n%s", err, text)
	}
}
