package doctor

import (
	"fmt"
	"os"
	"path/filepath"
)

// LocalPorts is how many connections this host can make to one address and port; 0 when the kernel does not say. proc
// is /proc.
func LocalPorts(proc string) int {
	raw, err := os.ReadFile(filepath.Join(proc, "sys/net/ipv4/ip_local_port_range"))
	if err != nil {
		return 0
	}
	var low, high int
	if _, err := fmt.Sscan(string(raw), &low, &high); err != nil || low < 1 || high < low || high > 65535 {
		return 0
	}
	return high - low + 1
}
