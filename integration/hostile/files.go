package hostile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"saltclusterd/integration/lab"
)

// maxLook is how much of a file is looked at.
const maxLook = 4 << 20

// stamp is what a file was.
type stamp struct {
	size int64
	sum  [32]byte
	mode fs.FileMode
}

// census is every file below a directory, by its path there.
type census map[string]stamp

// unread are places where nothing is looked at: logs, sockets and temporary files of processes.
var unread = regexp.MustCompile(`^(var/log|var/run|run|tmp)(/|$)|\.pyc$|/__pycache__(/|$)`)

func take(root string) (census, error) {
	c := census{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case unread.MatchString(filepath.ToSlash(rel)):
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir(), !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0:
			return nil
		}
		s := stamp{mode: e.Type()}
		if content, err := look(path, e); err == nil {
			s.size, s.sum = int64(len(content)), sha256.Sum256(content)
		}
		c[filepath.ToSlash(rel)] = s
		return nil
	})
	return c, err
}

func look(path string, e fs.DirEntry) ([]byte, error) {
	if e.Type()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		return []byte(to), err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, maxLook)
	n, err := f.Read(b)
	if n > 0 {
		err = nil
	}
	return b[:n], err
}

// cache is where masters keep caches, below a host's directory.
const cache = `^var/cache/salt/master/`

// masterWrites are files that masters and saltclusterd write on their own, or when a minion asks for what it may ask
// for. The jobs and keys in them are judged elsewhere.
var masterWrites = regexp.MustCompile(strings.Join([]string{
	`^var/lib/saltclusterd/`, `^etc/salt/pki/master/(minions|minions_pre|minions_rejected|minions_denied)/`,
	`^etc/salt/pki/master/\.`,
	cache + `(jobs|proc|file_lists|roots|queues|extmods|files|sessions|publish_auth|gitfs|hgfs|svnfs|s3cache|minionfs)/`,
	cache + `\.`,
	cache + `(resource_index|resources?)[^/]*(/|$)`, cache + `(grains|pillar|mine|minions)/[^/]*$`,
	cache + `minions/[^/]+/(data|mine)\.p$`,
	cache + `module_refresh$`, cache + `sched/`, cache + `batch_active\.p$`,
}, "|"))

// expires are files that masters remove when their time is over.
var expires = regexp.MustCompile(cache + `tokens/`)

// syndics are marks of who has brought the returns of others.
var syndics = regexp.MustCompile(cache + `syndics/`)

// belongs says whether a file is one where what the minion says may stand. A pillar that a master of 3008 keeps is
// named by the minion and the environment, with directories where that has slashes.
func (s *scene) belongs(path string) bool {
	own := regexp.QuoteMeta(s.own)
	if strings.Contains("/"+path+"/", "/../") {
		return false
	}
	for _, p := range []string{
		cache + `minions/` + own + `/`, cache + `(grains|mine)/` + own + `\.p$`, cache + `pillar/` + own + `(:.*)?\.p$`,
		cache + `(sessions|syndics)/` + own + `$`,
		cache + `jobs/`, cache + `publish_auth/\d+$`, cache + `resource_grains/[^/]*$`, cache + `resource[^/]*$`,
		cache + `resource[^/]*/[^/]*$`,
		`^var/lib/saltclusterd/`, `^etc/salt/pki/master/minions_(pre|denied)/`,
	} {
		if regexp.MustCompile(p).MatchString(path) {
			return true
		}
	}
	return false
}

// judgeFiles compares what is below a host's directory with what was.
func (w *world) judgeFiles(n *lab.Node, before census) error {
	root := n.Dir()
	after, err := take(root)
	if err != nil {
		return err
	}
	prefix := []byte(markPrefix(w.scene.seed))
	for path, now := range after {
		was, known := before[path]
		if known && was == now || w.scene.belongs(path) {
			continue
		}
		content, _ := os.ReadFile(filepath.Join(root, path))
		content = append(content, path...)
		switch {
		case syndics.MatchString(path):
			w.book.violated("returns", string(content), "%s: %s says that it brought returns", n.Name, clip(path))
		case bytes.Contains(content, prefix):
			w.book.violated("files", string(content), "%s: %s holds what was said here", n.Name, clip(path))
		case masterWrites.MatchString(path):
		case known:
			w.book.violated("files", path, "%s: %s has changed", n.Name, clip(path))
		default:
			w.book.violated("files", path, "%s: %s is new", n.Name, clip(path))
		}
	}
	for path := range before {
		if _, there := after[path]; !there && !masterWrites.MatchString(path) && !w.scene.belongs(path) &&
			!expires.MatchString(path) {
			w.book.violated("files", path, "%s: %s is gone", n.Name, clip(path))
		}
	}
	return nil
}

// judgeOutside looks for what commands would have left behind.
func (w *world) judgeOutside() error {
	names, err := os.ReadDir(w.scene.outside)
	for _, e := range names {
		if e.Name() != canary {
			w.book.violated("files", e.Name(), "%s was made", clip(e.Name()))
		}
	}
	return err
}
