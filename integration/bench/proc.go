package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/lab"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	tick = 10 * time.Millisecond // of CPU times in /proc
)

// stat is what one process has used.
type stat struct {
	parent int
	cpu    time.Duration // user and system, own and of ended children
}

func readStat(pid int) (s stat, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The command's name is in parentheses and may contain anything.
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(f) < 15 {
		return s, fmt.Errorf("process %d: short stat", pid)
	}
	if s.parent, err = strconv.Atoi(f[1]); err != nil {
		return s, err
	}
	for _, field := range f[13:15] { // cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return s, err
		}
		s.cpu += time.Duration(n) * tick
	}
	own, err := ownCPU(pid)
	s.cpu += own
	return s, err
}

// ownCPU reads a process's CPU clock (clock_getcpuclockid(3)): utime and stime, to the nanosecond.
func ownCPU(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|scheduled, &ts)
	return time.Duration(ts.Nano()), err
}

// tree returns a process of the lab and everything below its supervisor, which adopts what a master leaves behind.
func tree(p *lab.Process) (map[int]stat, error) {
	main, err := readStat(p.PID())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]stat{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := readStat(pid); err == nil { // else just ended, and its parent has its time
				all[pid] = s
			}
		}
	}
	below := map[int]stat{}
	for pid, s := range all {
		at := pid
		for range 64 { // a reused process id could make a circle
			if at == main.parent {
				below[pid] = s
				break
			}
			at = all[at].parent
		}
	}
	return below, nil
}

// treeCPU is the CPU time used so far by a process of the lab and everything below it.
func treeCPU(p *lab.Process) (sum time.Duration, err error) {
	all, err := tree(p)
	for _, s := range all {
		sum += s.cpu
	}
	return sum, err
}

// statusOf sums fields of /proc/PID/status, or of a thread's.
func statusOf(path string, names ...string) (sum float64, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, name+":"); ok {
				n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// memoryOf reads VmRSS or VmHWM of a process, in bytes.
func memoryOf(pid int, name string) (float64, error) {
	n, err := statusOf(fmt.Sprintf("/proc/%d/status", pid), name)
	return n * kib, err
}
