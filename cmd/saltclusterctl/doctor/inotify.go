package doctor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Inotify compares the watches that the user of a process holds with the kernel's limits. proc is /proc.
func Inotify(proc string, pid int) []Finding {
	const check = "inotify"
	uid, found := uidOf(proc, strconv.Itoa(pid))
	if !found {
		return []Finding{skip(check, "", "saltclusterd is not running, or is in another namespace")}
	}
	watches, instances, complete := watchesOf(proc, uid)
	var out []Finding
	for _, l := range []struct {
		name string
		used int
	}{{"max_user_watches", watches}, {"max_user_instances", instances}} {
		limit, err := readNumber(filepath.Join(proc, "sys/fs/inotify", l.name))
		if err != nil {
			return append(out, skip(check, l.name, "the kernel does not report it: "+err.Error()))
		}
		level, what := OK, fmt.Sprintf("%d of %d are used by uid %d", l.used, limit, uid)
		if 10*l.used >= 8*limit {
			level = Warn
		}
		if l.used >= limit {
			level = Fail
		}
		f := Finding{Check: check, Level: level, Where: "fs.inotify." + l.name, What: what}
		if level != OK {
			f.Why = "without a watch, edits of roots and keys are noticed only by the scan every few seconds"
			f.Next = fmt.Sprintf("sysctl -w fs.inotify.%s=%d, and the same line in /etc/sysctl.d", l.name, 4*limit)
		}
		out = append(out, f)
	}
	if !complete {
		out = append(out, skip(check, "", "run it as root to count the watches of all processes"))
	}
	return out
}

func readNumber(path string) (int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}

func uidOf(proc, pid string) (uint32, bool) {
	info, err := os.Stat(filepath.Join(proc, pid))
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// watchesOf counts watches and inotify descriptors of all processes of a user.
func watchesOf(proc string, uid uint32) (watches, instances int, complete bool) {
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return 0, 0, false
	}
	complete = true
	for _, dir := range dirs {
		if owner, ok := uidOf(proc, filepath.Base(dir)); !ok || owner != uid {
			continue
		}
		fds, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			complete = complete && os.IsNotExist(err)
			continue
		}
		for _, fd := range fds {
			if target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err != nil || target != "anon_inode:inotify" {
				continue
			}
			instances++
			watches += countWatches(filepath.Join(dir, "fdinfo", fd.Name()))
		}
	}
	return watches, instances, complete
}

func countWatches(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(io.LimitReader(f, maxTable)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "inotify wd:") {
			n++
		}
	}
	return n
}
