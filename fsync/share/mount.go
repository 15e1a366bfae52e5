package share

import (
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"saltclusterd/paths"
)

// Contains says whether a path is on the file system of dir, a directory on the share; own is a directory on this
// host's own disk. It returns true when it cannot find out, and takes as long as the file system does.
func Contains(dir, own, path string) bool {
	path = paths.Existing(path)
	if same, err := sameMount(paths.Existing(dir), paths.Existing(own)); err == nil && !same {
		same, err := sameMount(paths.Existing(dir), path)
		return same || err != nil
	}
	// The share is not a mount, which happens in tests only: paths beside dir are on it.
	root, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return true
	}
	resolved, err := filepath.EvalSymlinks(path)
	return err != nil || resolved == root || strings.HasPrefix(resolved, root+string(filepath.Separator))
}

// sameMount says whether two paths are on one mount.
func sameMount(a, b string) (bool, error) {
	ia, err := mountID(a)
	if err != nil {
		return false, err
	}
	ib, err := mountID(b)
	return ia == ib && err == nil, err
}

func mountID(p string) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, p, 0, unix.STATX_MNT_ID, &st); err != nil {
		return 0, &fs.PathError{Op: "statx", Path: p, Err: err}
	}
	if st.Mask&unix.STATX_MNT_ID == 0 { // a kernel before 5.8
		return uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), nil
	}
	return st.Mnt_id, nil
}
