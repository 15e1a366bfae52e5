package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc (USER_HZ is 100 on every Linux that Salt runs on).
const tick = 10 * time.Millisecond

// stat is what matters here of a process.
type stat struct {
	parent int
	cpu    time.Duration // user and system, own and that of ended children
}

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The command's name stands in parentheses and may hold anything.
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(f) < 15 {
		return stat{}, fmt.Errorf("process %d: short stat", pid)
	}
	var s stat
	if s.parent, err = strconv.Atoi(f[1]); err != nil {
		return s, err
	}
	own := f[11:13] // utime, stime; cutime, cstime
	if ns, err := ownCPU(pid); err == nil {
		own, s.cpu = nil, ns
	}
	for _, field := range append(own, f[13:15]...) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return s, err
		}
		s.cpu += time.Duration(n) * tick
	}
	return s, nil
}

// ownCPU reads the process's CPU clock (clock_getcpuclockid(3)), which counts the same as utime and stime, to the nanosecond.
func ownCPU(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|scheduled, &ts)
	return time.Duration(ts.Nano()), err
}

// treeCPU is the CPU time used so far by a process and everything below it.
func treeCPU(root int) (time.Duration, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	all := map[int]stat{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := readStat(pid); err == nil { // else it has just ended; its parent has its time
				all[pid] = s
			}
		}
	}
	if _, ok := all[root]; !ok {
		return 0, fmt.Errorf("process %d is gone", root)
	}
	var sum time.Duration
	for pid, s := range all {
		if below(all, pid, root) {
			sum += s.cpu
		}
	}
	return sum, nil
}

func below(all map[int]stat, pid, root int) bool {
	for range 64 { // deep enough; a process id used again could make a circle
		if pid == root {
			return true
		}
		s, ok := all[pid]
		if !ok || s.parent == 0 {
			return false
		}
		pid = s.parent
	}
	return false
}

// residentBytes of one process.
func residentBytes(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(raw))
	if len(f) < 2 {
		return 0, fmt.Errorf("process %d: short statm", pid)
	}
	pages, err := strconv.Atoi(f[1])
	return float64(pages * os.Getpagesize()), err
}

// resetPeak makes the peak of a process's resident memory begin anew, and returns what it has now.
func resetPeak(pid int) (float64, error) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return 0, err
	}
	return residentBytes(pid)
}

// peakBytes of the resident memory since resetPeak.
func peakBytes(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return float64(n) * kib, err
		}
	}
	return 0, fmt.Errorf("process %d: no peak", pid)
}

// fileSystem names the kind of file system that holds a directory: what directories cost differs much.
func fileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "an unknown file system"
	}
	switch s.Type {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "XFS"
	}
	return fmt.Sprintf("a file system of type %#x", s.Type)
}

// add adds what one process has.
func (r *resident) add(pid int) error {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("memory of process %d: %w", pid, err)
	}
	own, files := residentOf(string(raw))
	r.Own, r.Files = append(r.Own, own/mib), append(r.Files, files/mib)
	return nil
}

// residentOf reads /proc/PID/status: bytes of memory of the process's own, and of files.
func residentOf(status string) (own, files float64) {
	for line := range strings.Lines(status) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		switch {
		case err != nil:
		case name == "RssAnon":
			own += n * kib
		case name == "RssFile", name == "RssShmem":
			files += n * kib
		}
	}
	return own, files
}
