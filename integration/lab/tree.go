package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// descendants lists the living processes below root, root not among them.
func descendants(root int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if ppid, state := procStat(pid); ppid > 0 && state != "Z" {
			children[ppid] = append(children[ppid], pid)
		}
	}
	var all []int
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		all = append(all, children[todo[0]]...)
		todo = append(todo, children[todo[0]]...)
	}
	return all
}

// procStat reads the parent and the state letter of a process; 0 when it is gone.
func procStat(pid int) (ppid int, state string) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// The command's name stands in parentheses and may hold anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 2 {
		return 0, ""
	}
	ppid, _ = strconv.Atoi(fields[1])
	return ppid, fields[0]
}

// signalTree sends sig to all descendants, again until no new ones appear: a tree may fork while it is walked.
func signalTree(root int, sig syscall.Signal) {
	seen := map[int]bool{}
	for range 20 {
		fresh := false
		for _, pid := range descendants(root) {
			if !seen[pid] {
				seen[pid], fresh = true, true
				_ = syscall.Kill(pid, sig)
			}
		}
		if !fresh {
			return
		}
	}
}

// killTree kills all descendants and waits until they are gone.
func killTree(root int, within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		left := descendants(root)
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v survive SIGKILL", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
