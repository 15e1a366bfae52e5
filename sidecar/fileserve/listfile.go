package fileserve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"saltclusterd/sidecar/saltwire"
)

// maxLeaf is what a master can make a file's name of, and that of a lock; without one it stumbles.
const maxLeaf = 250

// maxListFile bounds what is read of a list that a master has written.
const maxListFile = 64 << 20

// leaf is salt.utils.files.safe_filename_leaf.
var leaf = strings.NewReplacer(
	`\`, "%5C", ":", "%3A", "/", "%2F", "*", "%2A", "?", "%3F", `"`, "%22", "<", "%3C", ">", "%3E", "|", "%7C",
).Replace

// listFile is where the master keeps the lists of an environment.
func (s *Settings) listFile(env string) string { return filepath.Join(s.ListDir, leaf(env)+".p") }

// listStamp tells one writing of such a file from another; zero: there is none.
type listStamp struct {
	ino         uint64
	size, mtime int64
	seconds     int64 // of mtime, as the age is counted
	exists      bool
}

func stampOf(name string) (listStamp, error) {
	s, ok, err := statPath(name)
	if err != nil || !ok || !s.isRegular() {
		return listStamp{}, err
	}
	return listStamp{s.Ino, s.Size, s.Mtim.Nano(), s.Mtim.Sec, true}, nil
}

// isFresh is the test of salt.fileserver.check_file_list_cache: whole seconds, nothing from the future.
func (l listStamp) isFresh(now time.Time, keep time.Duration) bool {
	age := now.Unix() - l.seconds
	return l.exists && age >= 0 && age < int64(keep/time.Second)
}

// readLists reads what a master, or we, have written.
func readLists(name string) (*lists, error) {
	f, err := os.OpenFile(name, openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxListFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxListFile {
		return nil, errLarge
	}
	return parseLists(text)
}

// errListFile says that a file holds no lists.
var errListFile = errors.New("no lists of files")

// parseLists reads salt.payload.dumps of the four lists.
func parseLists(text []byte) (*lists, error) {
	l := &lists{}
	err := saltwire.WalkMap(text, func(key, value []byte) (err error) {
		switch string(key) {
		case "files":
			l.files, err = decodeNames(value)
		case "dirs":
			l.dirs, err = decodeNames(value)
		case "empty_dirs":
			l.empty, err = decodeNames(value)
		case "links":
			l.links, err = decodeLinks(value)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errListFile, err)
	}
	return l.setWeight(), nil
}

func decodeNames(value []byte) ([]string, error) {
	var out []string
	err := saltwire.WalkArray(value, func(v []byte) error {
		b, ok := saltwire.Bytes(v)
		if !ok || !utf8.Valid(b) {
			return errListFile
		}
		if !isOwn(string(b)) {
			out = append(out, string(b))
		}
		return nil
	})
	slices.Sort(out) // stock answers are sorted again, too
	return slices.Compact(out), err
}

func decodeLinks(value []byte) ([]link, error) {
	var out []link
	err := saltwire.WalkMap(value, func(key, v []byte) error {
		b, ok := saltwire.Bytes(v)
		if !ok || !utf8.Valid(b) || !utf8.Valid(key) {
			return errListFile
		}
		if !isOwn(string(key)) {
			out = append(out, link{string(key), string(b)})
		}
		return nil
	})
	return out, err
}

// encodeLists is parseLists' opposite.
func (l *lists) encodeLists() []byte {
	dst := saltwire.AppendMapHeader(make([]byte, 0, l.weight+64), 4)
	for _, one := range []struct {
		name  string
		names []string
	}{{"files", l.files}, {"dirs", l.dirs}, {"empty_dirs", l.empty}} {
		dst = saltwire.AppendRaw(dst, one.name)
		dst = append(dst, listReply(one.names)...)
	}
	dst = saltwire.AppendRaw(dst, "links")
	return append(dst, l.linksReply("")...)
}

// linksReply is the answer of _symlink_list.
func (l *lists) linksReply(prefix string) []byte {
	n := 0
	for _, k := range l.links {
		if strings.HasPrefix(k.name, prefix) {
			n++
		}
	}
	dst := saltwire.AppendMapHeader(nil, n)
	for _, k := range l.links {
		if strings.HasPrefix(k.name, prefix) {
			dst = appendPair(dst, k.name, k.dest)
		}
	}
	return dst
}

// writeLists puts lists where the master keeps them, whole or not at all.
func writeLists(name string, l *lists) (err error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".saltclusterd-")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(l.encodeLists()); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
