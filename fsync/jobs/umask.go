package jobs

import (
	"os"
	"strconv"
	"strings"
)

// usualUmask is that of a master that was started as a daemon, and of one started by systemd.
const usualUmask = 0o022

// ownUmask reads this process's umask without changing it. Where it cannot, it is taken to let nothing through.
func ownUmask() uint32 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0o777
	}
	_, rest, _ := strings.Cut(string(raw), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return 0o777
	}
	return uint32(mask)
}

// fileMode and dirMode are what this node's master would give a job's files and directories.
func (d disk) fileMode() uint32 { return 0o666 &^ d.umask() }

func (d disk) dirMode() uint32 { return 0o777 &^ d.umask() }
