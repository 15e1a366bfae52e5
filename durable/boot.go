package durable

import (
	"crypto/rand"
	"os"
	"strings"
)

// BootID names the run of the machine, of the host where this is a container: what was written in it and not synced is
// still there after a kill, and may not be after its end. Where the kernel does not tell, each call returns another
// name.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return rand.Text()
	}
	return strings.TrimSpace(string(b))
}
