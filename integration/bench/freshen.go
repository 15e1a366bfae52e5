package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freshBytes is more than either side of a measurement of trees needs.
const freshBytes = 4 << 30

// settle ends what is on its way to the disk, so that nobody pays for what others have left, and freshens the memory.
func settle() error {
	unix.Sync()
	return freshen()
}

// freshen touches free memory and gives it back. The host of a virtual machine takes memory away that the machine has not used for a while,
// and who touches that first waits for the host: 1.4 s for a GiB have been seen, where the rest of writing it to a file takes half a second. So neither side
// of a measurement is to find more of it than the other one.
func freshen() error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("ask for free memory: %w", err)
	}
	size := min(freshBytes, uint64(info.Freeram)*uint64(info.Unit)/2)
	m, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("touch free memory: %w", err)
	}
	return unix.Munmap(m)
}
