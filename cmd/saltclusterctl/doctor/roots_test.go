package doctor

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func account(uid uint32, gids ...uint32) Account { return Account{Name: "salt", UID: uid, GIDs: gids} }

func mkdir(t *testing.T, mode os.FileMode, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Chmod(dir, mode)) // whatever the umask is
	return dir
}

func TestRoots_OtherUser(t *testing.T) {
	dir := mkdir(t, 0o755, t.TempDir(), "srv")
	mkdir(t, 0o755, dir, "web", "files")
	me, my := uint32(os.Geteuid()), uint32(os.Getegid())
	dirs := []string{dir, filepath.Join(dir, "none")}
	if got := Roots(account(me, my), dirs, nil); len(got) > 0 {
		t.Errorf("the owner: %v", got)
	}
	if got := Roots(account(0, 0), dirs, nil); len(got) > 0 {
		t.Errorf("root: %v", got)
	}
	got := Roots(account(me+1, my+1), dirs, nil)
	if levels(got) != "warn" || got[0].Where != dir || !strings.Contains(got[0].What, "2 more directories of "+dir) {
		t.Errorf("somebody else: %v", got)
	}
	web := mkdir(t, 0o500, dir, "web")
	if got := Roots(account(max(me, 1), my), dirs, nil); me != 0 &&
		(levels(got) != "warn" || !strings.HasPrefix(got[0].Next, "chmod u+wx "+web+";")) {
		t.Errorf("a directory that nobody may write in: %v", got)
	}
	mkdir(t, 0o755, web) // else nobody but root could remove it
}

func TestRootsThatAreALink(t *testing.T) {
	top := t.TempDir()
	dir, link := mkdir(t, 0o755, top, "data"), filepath.Join(top, "link")
	require.NoError(t, os.Symlink(dir, link))
	got := Roots(account(uint32(os.Geteuid())+1, uint32(os.Getegid())+1), []string{link, dir}, nil)
	if levels(got) != "warn" || got[0].Where != dir {
		t.Errorf("where it leads to, once: %v", got)
	}
}

func TestRootsIgnoreWhatIsIgnored(t *testing.T) {
	dir := mkdir(t, 0o777, t.TempDir(), "srv")
	for _, name := range []string{".git/objects", ".saltcluster-area/x", "build/out"} {
		mkdir(t, 0o755, dir, name)
	}
	who := account(uint32(os.Geteuid())+1, uint32(os.Getegid())+1)
	if got := Roots(who, []string{dir}, nil); levels(got) != "warn" || got[0].Where != filepath.Join(dir, "build") ||
		!strings.Contains(got[0].What, "1 more") {
		t.Errorf("what is ignored by default: %v", got)
	}
	if got := Roots(who, []string{dir}, []string{".git", "build"}); len(got) > 0 {
		t.Errorf("what the configuration names: %v", got)
	}
	mkdir(t, 0o755, dir, "a", "b")
	if got := Roots(who, []string{dir}, []string{".git", "a/b", "build"}); levels(got) != "warn" ||
		strings.Contains(got[0].What, "more") {
		t.Errorf("a path: %v", got)
	}
}

func TestRootsOfAGroup(t *testing.T) {
	dir := mkdir(t, 0o775, t.TempDir(), "srv")
	me, my := uint32(os.Geteuid()), uint32(os.Getegid())
	if got := Roots(account(me+1, my+1, my), []string{dir}, nil); len(got) > 0 {
		t.Errorf("one of them: %v", got)
	}
	if got := Roots(account(me+1, my+1), []string{dir}, nil); levels(got) != "warn" {
		t.Errorf("somebody else: %v", got)
	}
	mkdir(t, 0o765, dir)
	if got := Roots(account(me+1, my+1, my), []string{dir}, nil); levels(got) != "warn" ||
		!strings.HasPrefix(got[0].Next, "chmod g+wx "+dir) {
		t.Errorf("who may write, but not enter: %v", got)
	}
}

// What is advised takes a directory from nobody.
func TestAdviceForRoots(t *testing.T) {
	const salt, saltGroup, team = 64001, 64002, 64003
	for want, l := range map[string]rootLook{
		"chown -R salt: /srv/salt": {closed: 3, below: 2,
			st: &syscall.Stat_t{Mode: 0o755}},
		"chown -R salt: /srv/salt; likewise the others": {closed: 3, below: 1,
			st: &syscall.Stat_t{Mode: 0o750}},
		"chgrp 64002 /srv/salt; chmod g+wx /srv/salt": {closed: 1, others: true,
			st: &syscall.Stat_t{Mode: 0o755}},
		"chgrp 64002 /srv/salt; chmod g+wx /srv/salt; likewise the others": {closed: 2, below: 1,
			st: &syscall.Stat_t{Uid: 64009, Gid: 64009, Mode: 0o755}},
		"usermod -aG 64003 salt; systemctl restart saltclusterd": {closed: 1,
			st: &syscall.Stat_t{Gid: team, Mode: 0o2775}},
		"chmod u+wx /srv/salt": {closed: 1,
			st: &syscall.Stat_t{Uid: salt, Mode: 0o555}},
		"chmod g+wx /srv/salt": {closed: 1,
			st: &syscall.Stat_t{Gid: saltGroup, Mode: 0o755}},
	} {
		l.who, l.first = account(salt, saltGroup), "/srv/salt"
		check.Equal(t, l.adviceText(), want)
	}
}

// A repository, or what somebody else has put there, is seen below the directory that is closed.
func TestRootsWithOthersInThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have directories of several owners")
	}
	who := account(64001, 64002)
	look := func(dir string) string {
		t.Helper()
		got := Roots(who, []string{dir}, nil)
		if levels(got) != "warn" {
			t.Fatalf("%v", got)
		}
		return got[0].Next
	}
	plain := mkdir(t, 0o755, t.TempDir(), "srv")
	mkdir(t, 0o755, plain, "web")
	require.NoError(t, os.Chown(filepath.Join(plain, "web"), 64001, 64002))
	if got := look(plain); !strings.HasPrefix(got, "chown -R salt: "+plain+";") {
		t.Errorf("root's: %s", got)
	}
	repository := mkdir(t, 0o755, t.TempDir(), "srv")
	mkdir(t, 0o755, repository, ".git")
	if got := look(repository); strings.Contains(got, "chown") || !strings.HasPrefix(got, "chgrp 64002 "+repository+";") {
		t.Errorf("a repository: %s", got)
	}
	write(t, filepath.Join(plain, "web", "x"), "x")
	require.NoError(t, os.Chown(filepath.Join(plain, "web", "x"), 64009, 64009))
	if got := look(plain); strings.Contains(got, "chown") {
		t.Errorf("a file of somebody: %s", got)
	}
}

func TestGroupsOfAnAccount(t *testing.T) {
	proc := t.TempDir()
	write(t, filepath.Join(mkdir(t, 0o755, proc, "7"), "status"), "Name:\tsaltclusterd\nGroups:\t5 64003 \nNStgid:\t7\n")
	check.Equal(t, fmt.Sprint(AccountOfProcess(proc, 7, "salt", 64001, 64002)), "{salt 64001 [64002 5 64003]}")
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	gids, err := u.GroupIds()
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	for name, got := range map[string]Account{"process gone": AccountOfProcess(proc, 8, "me", uint32(uid), 64002),
		"user": AccountOf("me", uint32(uid), 64002)} {
		for _, gid := range parseIDs(gids) {
			if !slices.Contains(got.GIDs, gid) {
				t.Errorf("%s: %v lacks %d", name, got, gid)
			}
		}
	}
}
