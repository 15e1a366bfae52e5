package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// capSysResource is the bit of the capability by which a process raises its own limits.
const capSysResource = 1 << 24

// OpenFiles is how many files a running HAProxy of this host may open, or may allow itself to; 0 when none is seen.
// proc is /proc.
func OpenFiles(proc string) int {
	all, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return 0
	}
	most := 0 // a master process starts the workers, and has rights that they have given up
	for _, comm := range all {
		if name, err := os.ReadFile(comm); err != nil || strings.TrimSpace(string(name)) != "haproxy" {
			continue
		}
		dir := filepath.Dir(comm)
		limit := readField(filepath.Join(dir, "limits"), "Max open files", 1, 10)
		if readField(filepath.Join(dir, "status"), "CapEff:", 0, 16)&capSysResource != 0 {
			limit = max(limit, readField(filepath.Join(proc, "sys/fs/nr_open"), "", 0, 10))
		}
		most = max(most, limit)
	}
	return most
}

// readField is the i-th word after the name of the line in a file; 0 when it is not there.
func readField(path, name string, i, base int) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if words := strings.Fields(rest); ok && i < len(words) {
			if n, err := strconv.ParseInt(words[i], base, 64); err == nil {
				return int(n)
			}
		}
	}
	return 0
}
