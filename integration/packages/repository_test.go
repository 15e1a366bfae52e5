//go:build integration

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

// Keys that repositories are signed with.
const (
	ours   = "packages@example.com"
	theirs = "somebody@example.com"
)

// TestRepository installs from a signed repository with apt and with dnf, which check every signature: the first
// version, an upgrade when there is a newer one, and nothing that has been changed or that somebody else has signed.
func TestRepository(t *testing.T) {
	h := newHost(t)
	addToRepository(t, ours, "repository", oldVersion)
	addToRepository(t, theirs, "other", newVersion)
	h.sh("systemd-run --unit=web python3 -m http.server -b 127.0.0.1 -d /packages 8000")
	h.await(time.Minute, "the web server", "curl -fs http://127.0.0.1:8000/repository/saltclusterd.asc")
	h.sh("rm /etc/apt/sources.list") // nothing but ours can be reached from here
	h.sh(`mkdir -p /etc/apt/keyrings
		curl -fsS -o /etc/apt/keyrings/saltclusterd.asc http://127.0.0.1:8000/repository/saltclusterd.asc
		curl -fsS -o /etc/apt/sources.list.d/saltclusterd.sources http://127.0.0.1:8000/repository/saltclusterd.sources
		apt-get update; apt-get install -y saltclusterd`)
	h.has(h.sh("saltclusterd --version; apt-cache policy saltclusterd"), "saltclusterd "+oldVersion,
		"http://127.0.0.1:8000/repository/deb stable/main amd64")

	// What dnf looks for in a system of rpms.
	h.write("/root/glibc.spec", "Name: glibc\nVersion: 2.36\nRelease: 1\nSummary: what Debian has\nLicense: x\n"+
		"Provides: libc.so.6()(64bit)\n%description\n%files")
	h.sh("rpmbuild -bb /root/glibc.spec; rpm --initdb; rpm -i --nodeps /root/rpmbuild/RPMS/*/glibc-*.rpm")
	h.sh("apt-get purge -y saltclusterd")
	h.sh("mkdir -p /etc/yum.repos.d; curl -fsS -o /etc/yum.repos.d/saltclusterd.repo http://127.0.0.1:8000/repository/saltclusterd.repo")
	h.sh(dnf + "install saltclusterd")
	h.has(h.sh("saltclusterd --version; rpm -qi saltclusterd"), "saltclusterd "+oldVersion, "RSA/SHA512")

	addToRepository(t, ours, "repository", newVersion)
	h.sh(dnf + "--refresh upgrade")
	h.has(h.sh("saltclusterd --version; rpm -V saltclusterd"), "saltclusterd "+newVersion)
	h.sh("rpm -e saltclusterd; rm -rf /var/lib/saltclusterd /etc/salt")
	h.sh("apt-get install -y saltclusterd; apt-get update; apt-get upgrade -y")
	h.has(h.sh("saltclusterd --version"), "saltclusterd "+newVersion)
	h.sh("apt-get install -y --allow-downgrades saltclusterd=" + oldVersion)
	h.has(h.sh("saltclusterd --version"), "saltclusterd "+oldVersion)
	h.sh("apt-get purge -y saltclusterd")

	t.Run("refused by apt", func(t *testing.T) { (&host{h.machine, t}).aptRefuses() })
	t.Run("refused by dnf", func(t *testing.T) { (&host{h.machine, t}).dnfRefuses() })
}

// dnf runs as on a Red Hat: Debian has no release that it knows.
const dnf = "dnf -y --releasever=9 "

// changeRepository makes another copy of the repository, below /srv, and changes it.
func (h *host) changeRepository(change string) {
	h.sh("rm -rf /srv/repository; cp -r /packages/repository /srv; cd /srv/repository; " + change)
}

// aptRefuses: the host uses a copy of the repository, from which it installs as long as nothing is changed.
func (h *host) aptRefuses() {
	h.changeRepository("true")
	h.sh("sed -i s,^URIs:.*,URIs:\\ file:/srv/repository/deb, /etc/apt/sources.list.d/saltclusterd.sources")
	h.sh("apt-get update; apt-get install -y saltclusterd; apt-get purge -y saltclusterd")
	for _, c := range []struct{ name, change, says string }{
		{"a changed package", "printf x | dd conv=notrunc bs=1 seek=9000 of=deb/pool/saltclusterd_" + newVersion +
			"_amd64.deb", "Hash Sum mismatch"},
		{"a changed list", "sed -i s/^Priority.*/Priority:.required/ $(find deb/dists -path '*amd64*' -type f ! -name '*.gz'); " +
			"find deb/dists -name '*.gz' -delete", "Hash Sum mismatch"},
		{"a changed release", "sed -i s/^Label.*/Label:.other/ deb/dists/stable/InRelease", "not signed"},
		{"no signature", "rm deb/dists/stable/InRelease deb/dists/stable/Release.gpg", "not signed"},
		{"another key", "rm -r deb; cp -r /packages/other/deb .", "not signed"},
	} {
		h.changeRepository(c.change)
		h.sh("rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb")
		check.Contains(h.t, h.fails("apt-get update && apt-get install -y saltclusterd"), c.says, c.name)
		h.fails("test -e /usr/bin/saltclusterd")
	}
}

// dnfRefuses: the same for dnf.
func (h *host) dnfRefuses() {
	h.changeRepository("true")
	h.sh("sed -i s,^baseurl.*,baseurl=file:///srv/repository/rpm/x86_64, /etc/yum.repos.d/saltclusterd.repo")
	h.sh(dnf + "clean all; " + dnf + "install saltclusterd; " + dnf + "remove saltclusterd")
	for _, c := range []struct{ name, change, says string }{
		{"a changed package", "printf x | dd conv=notrunc bs=1 seek=90000 of=rpm/x86_64/saltclusterd-" + newVersion +
			"-1.x86_64.rpm", "checksum"},
		{"a changed list", "sed -i s/revision/Revision/ rpm/x86_64/repodata/repomd.xml", "GPG"},
		{"no signature", "rm rpm/x86_64/repodata/repomd.xml.asc", "repomd.xml.asc"},
		{"another key", "rm -r rpm; cp -r /packages/other/rpm .", "GPG"},
		{"a package of another key", "rm -r rpm; cp -r /packages/other/rpm .; " +
			"sed -i s/^repo_gpgcheck.*/repo_gpgcheck=0/ /etc/yum.repos.d/saltclusterd.repo", "GPG"},
	} {
		h.changeRepository(c.change)
		h.sh(dnf + "clean all")
		check.Contains(h.t, h.fails(dnf+"install saltclusterd"), c.says, c.name)
		h.fails("test -e /usr/bin/saltclusterd")
	}
}

// TestRepository_Refused: what must not be published leaves the repository as it is.
func TestRepository_Refused(t *testing.T) {
	newHost(t) // for its packages
	addToRepository(t, ours, "published", oldVersion)
	addToRepository(t, theirs, "other", newVersion) // makes the key, if it is the first
	for _, c := range []struct{ name, key, packages, says string }{
		{"another key", theirs, "cp $old/* .", "signed with another key"},
		{"a key that is not there", "nobody@example.com", "cp $old/* .", "no secret key"},
		{"no packages", ours, "true", "make packages"},
		{"a changed package", ours, "cp $old/* .; for p in *.deb; do printf x >> $p; done", "do not match SHA256SUMS"},
		{"another package of a version", ours, "cp $old/*.rpm .; cp $new/*.deb saltclusterd_" + oldVersion +
			"_amd64.deb; sha256sum * > SHA256SUMS", "already published with different content"},
		{"a package of changes in no commit", ours, "cp $old/*.rpm .; cp $old/*.deb saltclusterd_1.dirty_amd64.deb; " +
			"sha256sum * > SHA256SUMS", "uncommitted changes"},
	} {
		dir := t.TempDir()
		prepare := exec.CommandContext(t.Context(), "/bin/sh", "-ec", c.packages)
		prepare.Dir = dir
		prepare.Env = append(os.Environ(), "old="+filepath.Join(made, oldVersion), "new="+filepath.Join(made, newVersion))
		if out, err := prepare.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, out)
		}
		before := listFiles(t, filepath.Join(made, "published"))
		cmd := exec.CommandContext(t.Context(), "packaging/repository", c.key, dir, filepath.Join(made, "published"))
		cmd.Dir, cmd.Env = moduleRoot(t), signingEnv()
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		if after := listFiles(t, filepath.Join(made, "published")); after != before {
			t.Errorf("%s: the repository was\n%s\nand is\n%s", c.name, before, after)
		}
	}
}

// listFiles is every file below a directory with its digest.
func listFiles(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", "find . -type f -exec sha256sum {} + | sort")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// signingEnv is this process's environment with a keyring of its own.
func signingEnv() []string { return append(os.Environ(), "GNUPGHOME="+filepath.Join(made, "gnupg")) }

// addToRepository adds the packages of a version to one of the repositories in /packages.
func addToRepository(t *testing.T, key, name, version string) {
	t.Helper()
	script := `test -d "$GNUPGHOME" || mkdir -m 700 "$GNUPGHOME"
		gpg --batch --quiet --list-secret-keys "$1" 2>/dev/null >&2 ||
			gpg --batch --quiet --passphrase '' --quick-gen-key "$1" rsa3072 sign never
		packaging/repository "$1" "$2" "$3" "http://127.0.0.1:8000/$4"`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script, "sh", key, filepath.Join(made, version),
		filepath.Join(made, name), name)
	cmd.Dir, cmd.Env = moduleRoot(t), signingEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
