package tlsconfig

import (
	"fmt"
	"io/fs"
	"syscall"
)

// sysOf tells a file from another one that was renamed to its name, and from what it was before its mode changed.
func sysOf(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d %d %v", st.Dev, st.Ino, st.Ctim)
	}
	return ""
}
