package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// forbidCoreDumps keeps what this process has in memory, the cluster's keys, from others: no core is dumped when it
// crashes, whatever the limits are and whoever takes cores on this host (a program that core_pattern pipes them to does
// not go by the limit), and other processes of the same user can neither attach to it nor read its memory. Programs
// that it starts are not affected.
func forbidCoreDumps() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets out of core files: %w", err)
	}
	return nil
}
