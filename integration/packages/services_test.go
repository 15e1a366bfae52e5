//go:build integration

package packages

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// servicesPage has the scripts that this test runs.
const servicesPage = "docs/how-to/without-systemd.md"

// TestWithoutSystemd adopts a running salt-master on hosts whose services runit or OpenRC manage, with the scripts that
// the page has, and the commands that saltclusterctl prints there.
func TestWithoutSystemd(t *testing.T) {
	for _, m := range []manager{
		{
			name: "runit", init: runitInit, log: "/var/log/saltclusterd/current",
			master: map[string]string{"/etc/sv/salt-master/run": "#!/bin/sh\nexec 2>&1\nexec salt-master"},
			begin:  "ln -s /etc/sv/%s /etc/service/", start: "sv start %s", restart: "sv restart %s", stop: "sv -w 90 down %s",
			runs: "sv status %s | grep ^run:",
		},
		{
			name: "OpenRC", init: openRCInit, log: "/var/log/saltclusterd.log",
			master: map[string]string{"/etc/init.d/salt-master": "#!/sbin/openrc-run\n" +
				"supervisor=supervise-daemon\ncommand=/usr/local/bin/salt-master\n"},
			begin: "rc-update add %s; rc-service %s start", start: "rc-service %s start", restart: "rc-service %s restart",
			stop: "rc-service %s stop", runs: "rc-service %s status | grep started",
		},
	} {
		t.Run(m.name, func(t *testing.T) {
			h := newHostBootedBy(t, m.init, "m1", "10.99.0.11", salt)
			t.Cleanup(func() {
				if t.Failed() {
					log, _ := h.machine.sh(context.Background(), "tail -n 60 "+m.log+" /var/log/salt/*; ps -ef")
					t.Log(log)
				}
			})
			m.try(h)
		})
	}
}

// manager of services: what an operator types, with the name of the service in the place of %s.
type manager struct {
	name        string // the heading of the page
	init        initProgram
	log         string            // where the page has it
	master      map[string]string // files that make the salt-master a service
	begin       string            // for the first time
	start, stop string
	restart     string
	runs        string // fails when it does not
}

// of is a command for a service.
func of(command, service string) string {
	return strings.ReplaceAll(command, "%s", service)
}

const answers = "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'"

func (m manager) try(h *host) {
	h.configureSalt()
	h.sh("sed -i /^interface/d /etc/salt/master")
	h.writePrograms(m.master)
	h.sh(of(m.begin, "salt-master"))
	h.sh("salt-minion -d")
	h.await(90*time.Second, "the minion's key", "salt-key -l pre --out json | grep -q web1")
	// Accepted again where the master made the key pending in between: salt-key of 3008 leaves a moment for that.
	h.await(90*time.Second, "the minion to answer", "salt-key -y -a web1 >/dev/null || :; "+answers)

	h.sh("apt-get install -y " + h.deb(oldVersion))
	h.writePrograms(scripts(h.t, m.name))
	h.sh("install -D -m 755 /usr/share/doc/saltclusterd/examples/serve /usr/local/lib/saltclusterd/serve")
	said := h.sh("saltclusterctl setup --yes --node m1 --cluster-id site")
	h.has(said, of(m.restart, "salt-master"))
	h.write("/etc/salt/saltclusterd.d/drain.conf", "drain_announce: 0s\ndrain_time: 1s")
	h.sh(of(m.begin, "saltclusterd"))
	h.await(time.Minute, "saltclusterd", "saltclusterctl version | grep -qF 'saltclusterd   "+oldVersion+"'")
	said += h.sh("saltclusterctl bootstrap; " + of(m.restart, "salt-master"))
	h.await(90*time.Second, "the minion to answer", answers)
	h.await(time.Minute, "a node without findings", "saltclusterctl status --check")
	said += h.sh("saltclusterctl status; saltclusterctl doctor || :; saltclusterctl help")
	if strings.Contains(said, "systemctl") || strings.Contains(said, "journalctl") {
		h.t.Errorf("commands of systemd, which is not here:\n%s", said)
	}
	h.has(h.sh("ps -o user= -C saltclusterd; cat "+m.log), "salt", "level=INFO")
	const limit = "awk '/open files/ { print $4 }' /proc/$(pgrep -x saltclusterd)/limits"
	if may := h.sh("(ulimit -n 524288 && ulimit -n) 2>/dev/null || :"); may == "" {
		h.t.Log("root may not raise the limit of open files here")
	} else if got := h.sh(limit); got != may {
		h.t.Errorf("%s open files, not %s", got, may)
	}

	m.upgrade(h)
	h.sh(of(m.restart, "saltclusterd"))
	h.await(90*time.Second, "the minion to answer after a restart", answers)
	h.sh("kill -KILL $(pgrep -x saltclusterd)")
	h.await(90*time.Second, "the minion to answer after a kill", answers)
	h.sh(of(m.stop, "saltclusterd"))
	if left := h.sh("pgrep -x saltclusterd || :"); left != "" {
		h.t.Errorf("runs after it was stopped: %s", left)
	}
	h.sh(of(m.start, "saltclusterd"))
	h.await(90*time.Second, "the minion to answer after a start", answers)
}

// upgrade: the new program takes over, the minion keeps its connection, and the manager sees the service run.
func (m manager) upgrade(h *host) {
	conn := h.sh(connection)
	h.has(h.sh("apt-get install -y "+h.deb(newVersion)+" 2>&1"), "saltclusterctl upgrade")
	h.sh("saltclusterctl upgrade")
	h.has(h.sh("saltclusterctl version"), "saltclusterd   "+newVersion)
	if now := h.sh(connection); now != conn || conn == "" {
		h.t.Errorf("the minion's connection was %q and is %q", conn, now)
	}
	h.sh(of(m.runs, "saltclusterd"))
	h.sh(answers)
}

// writePrograms writes files that can be executed.
func (h *host) writePrograms(files map[string]string) {
	h.t.Helper()
	for path, text := range files {
		h.write(path, text)
		h.sh("chmod 755 " + path)
	}
}

// scripts are the files that a page of the docs shows: where they go, and their text.
func scripts(t *testing.T, heading string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(moduleRoot(t) + "/" + servicesPage)
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	files := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^`(/[^`]*)`, executable[^\n]*\n\n((?:    .*\n|\n)+)").FindAllStringSubmatch(section, -1) {
		files[m[1]] = strings.ReplaceAll(strings.TrimRight("\n"+m[2], "\n"), "\n    ", "\n")[1:]
	}
	if len(files) == 0 {
		t.Fatalf("%s has no scripts under %q", servicesPage, heading)
	}
	return files
}
