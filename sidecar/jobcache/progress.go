package jobcache

import (
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// maxMinionList bounds what Progress reads of a job's list of minions.
const maxMinionList = 64 << 20

// Progress tells from the files of a master's job cache how many minions a job was for and how many have returned. want
// is zero when the cache does not say.
func Progress(cacheDir, hashType, jid string) (got, want int) {
	h := hashes[hashType]
	if h == 0 {
		return 0, 0
	}
	dir := filepath.Join(cacheDir, jobPath(h, jid))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			got++
		case name == ".minions.p", strings.HasPrefix(name, ".minions.") && strings.HasSuffix(name, ".p"):
			want += countList(filepath.Join(dir, name))
		}
	}
	return got, want
}

// Kept says whether a master's job cache has a job that was published: its load. A return alone leaves none.
func Kept(cacheDir, hashType, jid string) bool {
	h := hashes[hashType]
	if h == 0 {
		return false
	}
	st, err := os.Lstat(filepath.Join(cacheDir, jobPath(h, jid), ".load.p"))
	return err == nil && st.Mode().IsRegular()
}

// Umask tells from the directory of a job that a master has published, and made before it did so, what umask that
// master had.
func Umask(cacheDir, hashType, jid string) (mask uint32, ok bool) {
	h := hashes[hashType]
	if h == 0 || jid == "" {
		return 0, false
	}
	st, err := os.Lstat(filepath.Join(cacheDir, jobPath(h, jid)))
	if err != nil || !st.IsDir() || st.Mode().Perm()&0o700 != 0o700 {
		return 0, false
	}
	return 0o777 &^ uint32(st.Mode().Perm()), true
}

// countList counts the entries of a list of minions; 0 when it cannot be read.
func countList(path string) (n int) {
	if info, err := os.Stat(path); err != nil || info.Size() > maxMinionList {
		return 0
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	if err := saltwire.WalkArray(raw, func([]byte) error { n++; return nil }); err != nil {
		return 0
	}
	return n
}
