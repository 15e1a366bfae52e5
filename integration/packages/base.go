package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const suite = "bookworm"

// inBase are packages beside what a minimal Debian has: service managers, what Salt's virtualenvs need, rpm and dnf,
// tools to look and to download, and the programs that examples and manual pages are for.
var inBase = []string{"systemd", "systemd-sysv", "runit", "openrc", "python3", "rpm", "dnf", "iproute2", "procps", "openssl", "curl",
	"groff-base", "haproxy", "keepalived"}

// base returns the directory of a minimal Debian, which it makes when there is none.
func base(ctx context.Context, log func(...any)) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "saltclusterd", "debian-"+suite)
	stamp := strings.Join(inBase, " ")
	if have, err := os.ReadFile(filepath.Join(dir, ".complete")); err == nil && string(have) == stamp {
		return dir, nil
	}
	mirror, err := mirror(ctx)
	if err != nil {
		return "", err
	}
	log("making a Debian", suite, "in", dir)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(inBase, ","), suite,
		dir, mirror).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("debootstrap: %w\n%s", err, tail(string(out)))
	}
	if err := os.RemoveAll(filepath.Join(dir, "var/cache/apt/archives")); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, ".complete"), []byte(stamp), 0o644)
}

// mirror is where this machine's apt has its Debian from.
func mirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)",
		"Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt for its sources: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if uri, codename, ok := strings.Cut(strings.TrimSpace(line), " "); ok && codename == suite {
			return uri, nil
		}
	}
	return "", errors.New("apt of this machine has no Debian " + suite +
		" among its sources, or was never updated (apt-get update)")
}

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-8000):] }
