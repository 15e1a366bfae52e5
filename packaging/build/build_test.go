package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/guides"
	"saltclusterd/integration/require"
)

const list = "../nfpm.yaml"

func items(t *testing.T) []item {
	t.Helper()
	all, err := readItems(list)
	require.NoError(t, err)
	return all
}

// What the list names and what is laid out are the same, and what is copied exists.
func TestCheckItems_Stage(t *testing.T) {
	stage := t.TempDir()
	put := func(name string) {
		path := filepath.Join(stage, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	all, err := listCopies("../..")
	require.NoError(t, err)
	for to, from := range all {
		if _, err := os.Stat(filepath.Join("../..", from)); err != nil {
			t.Error(err)
		}
		put(to)
	}
	for to := range printed {
		put(to)
	}
	for _, name := range []string{"usr/bin/saltclusterd", "usr/bin/saltclusterctl", "doc/changelog.gz",
		"doc/third-party-licenses.gz", "doc/sbom.cdx.json"} {
		put(name)
	}
	check.NoError(t, checkItems(items(t), stage))
	put("forgotten")
	if err := checkItems(items(t), stage); err == nil || !strings.Contains(err.Error(), "forgotten is in no package") {
		t.Errorf("a file that is not listed: %v", err)
	}
	require.NoError(t, os.Remove(filepath.Join(stage, "saltclusterd.service")))
	if err := checkItems(items(t), stage); err == nil ||
		!strings.Contains(err.Error(), "saltclusterd.service is listed and not there") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestListRefuses(t *testing.T) {
	for _, line := range []string{
		"{src: ../x, dst: /x, file_info: {mode: 0644}}", "{src: x, dst: x, file_info: {mode: 0644}}", "{src: x, dst: /x}",
		"{src: x, dst: /x, file_info: {mode: 0666}}", "{src: x, dst: /x, type: tree, file_info: {mode: 0644}}",
		"{src: x, dst: /x, type: symlink}",
	} {
		path := filepath.Join(t.TempDir(), "list")
		require.NoError(t, os.WriteFile(path, []byte("contents:\n  - "+line+"\n"), 0o600))
		if _, err := readItems(path); err == nil {
			t.Errorf("%s was taken", line)
		}
	}
}

// Only the configuration is one that an upgrade leaves alone, and it holds no secret.
func TestConfigurationIsTheOperators(t *testing.T) {
	var config []string
	for _, i := range items(t) {
		if strings.HasPrefix(i.Dst, "/etc/") && i.Type != kindDir {
			config = append(config, i.Dst)
			if i.Type != kindConfig {
				t.Errorf("%s is overwritten by an upgrade", i.Dst)
			}
		}
	}
	check.EqualSlices(t, config, []string{"/etc/salt/saltclusterd"}, "below /etc")
}

// The unit names programs that are in the package, and the drain it waits for.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile("../saltclusterd.service")
	require.NoError(t, err)
	var dsts []string
	for _, i := range items(t) {
		dsts = append(dsts, i.Dst)
	}
	programs := 0
	for line := range strings.Lines(string(unit)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name != "ExecStart" && name != "ExecReload" {
			continue
		}
		programs++
		if program, _, _ := strings.Cut(value, " "); !slices.Contains(dsts, program) {
			t.Errorf("%s: %s is not in the package", name, program)
		}
	}
	check.Equal(t, programs, 2, "programs")
	for _, want := range []string{"Type=notify", "NotifyAccess=main", "WatchdogSec=", "Before=salt-master.service",
		"User=root", "NoNewPrivileges=yes"} {
		if !strings.Contains(string(unit), "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd here")
	}
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=30",
		"../saltclusterd.service").CombinedOutput()
	if err != nil && !strings.Contains(string(out), "unrecognized option") { // an older one
		t.Errorf("more exposed than 3.0: %v\n%s", err, out)
	}
}

func TestScriptsAreShell(t *testing.T) {
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		path := filepath.Join("../scripts", name)
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		for _, arg := range []string{"", "abort-upgrade", "failed-upgrade", "disappear"} { // nothing is to be done then
			if out, err := exec.CommandContext(t.Context(), "sh", path, arg).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s %s: %v, %s", name, arg, err, out)
			}
		}
	}
}

func TestVersionIsOfTheChangelog(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "../version").Output()
	require.NoError(t, err)
	base, _, _ := strings.Cut(strings.TrimSpace(string(out)), "~")
	if base == "" || !strings.Contains(string(changes), "\n## ["+base+"]") {
		t.Errorf("version %q", out)
	}
}

// The archive is the same whenever it is made, and has what the list says.
func TestArchive(t *testing.T) {
	stage := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(stage, "a"), []byte("text"), 0o600))
	list := []item{
		{Src: "a", Dst: "/usr/bin/b"}, {Dst: "/etc/d", Type: kindDir}, {Src: "/usr/bin/b", Dst: "/a/link", Type: kindSymlink},
		{Src: "a", Dst: "/rpm/only", Packager: "rpm"},
	}
	list[0].FileInfo.Mode, list[1].FileInfo.Mode = 0o755, 0o750
	epoch := time.Unix(1_700_000_000, 0)
	var made [2][]byte
	for i := range made {
		path := filepath.Join(t.TempDir(), "x.tar.gz")
		require.NoError(t, writeArchive(path, "top", stage, list, epoch))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		made[i] = text
		slices.Reverse(list)
		require.NoError(t, os.Chtimes(filepath.Join(stage, "a"), time.Now(), time.Now()))
	}
	check.EqualSlices(t, made[0], made[1], "two archives of the same list differ")
	z, err := gzip.NewReader(bytes.NewReader(made[0]))
	require.NoError(t, err)
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Uname != "root" {
			t.Errorf("%+v", h)
		}
		got = append(got, h.Name+" "+h.FileInfo().Mode().String())
	}
	want := []string{"top/a/link Lrwxrwxrwx", "top/etc/d/ drwxr-x---", "top/usr/bin/b -rwxr-xr-x"}
	check.EqualSlices(t, got, want)
}

// A page that is not packed is a broken link on the operator's host.
func TestEveryGuideIsPacked(t *testing.T) {
	all, err := listCopies("../..")
	require.NoError(t, err)
	pages, err := guides.Read("../..")
	require.NoError(t, err)
	for _, p := range pages {
		if strings.HasPrefix(p.Name, "docs/") && all["doc/"+p.Name] != p.Name {
			t.Errorf("%s is not packed", p.Name)
		}
	}
}
