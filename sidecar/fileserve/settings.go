package fileserve

import (
	"crypto"
	_ "crypto/md5" // hash_type
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"saltclusterd/sidecar/localmaster"
)

// Options are the master's effective options.
type Options = localmaster.Options

// The versions whose code this package mirrors.
const (
	minMajor = 3006
	maxMajor = 3008
)

const (
	rootsBackend = "roots"
	dynamicEnv   = "__env__"

	maxBuffer       = 64 << 20 // file_buffer_size
	defaultListTime = 20 * time.Second
	maxListTime     = 24 * time.Hour
)

var hashes = map[string]crypto.Hash{
	"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384,
	"sha512": crypto.SHA512,
}

// Settings is a configuration of the file server that is understood here.
type Settings struct {
	Roots       map[string][]string // environment → directories, as configured
	Follow      bool                // fileserver_followsymlinks
	IgnoreLinks bool                // fileserver_ignoresymlinks
	HashType    string
	Buffer      int // file_buffer_size
	ListTime    time.Duration
	ListDir     string // where the lists of the roots backend are kept
	HashDir     string // where a master keeps its hashes
	// Hidden are directories in which this process sees something else than the master (systemd's PrivateTmp=): what leads
	// there is forwarded.
	Hidden []string
	// Alone says that roots is the only backend. Otherwise what roots has is served here, because it is asked first, and
	// everything else is forwarded.
	Alone bool

	hash    crypto.Hash
	ignore  ignorer
	byRegex bool // names with a line feed may be ignored in another way by Python
}

// Native reads the settings of a master of that version. When requests for files have to be forwarded, all of them, it
// says why in words for an operator. It also looks for modules of the site's own, so ask again when the master
// restarts.
func Native(o Options, major int) (*Settings, string) {
	s := &Settings{
		Follow: o.Bool("fileserver_followsymlinks"), IgnoreLinks: o.Bool("fileserver_ignoresymlinks"),
		HashType: o.Text("hash_type"),
	}
	s.hash = hashes[s.HashType]
	switch {
	case major < minMajor || major > maxMajor:
		return nil, fmt.Sprintf("Salt %d is not a version whose file server is known here", major)
	case s.hash == 0:
		return nil, fmt.Sprintf("hash_type is %q", s.HashType)
	case o.Bool("master_stats"):
		return nil, "master_stats is on: the master's statistics would leave files out"
	case localmaster.Enabled(o, "metrics"), localmaster.Enabled(o, "tracing"):
		return nil, "metrics or tracing of the master are enabled: they would leave files out"
	case !path.IsAbs(o.Text("cachedir")):
		return nil, "cachedir is not an absolute path"
	}
	s.ListDir = filepath.Join(o.Text("cachedir"), "file_lists", rootsBackend)
	s.HashDir = filepath.Join(o.Text("cachedir"), rootsBackend, "hash")
	for _, read := range []func(Options) string{s.readBackends, s.readRoots, s.readIgnores, s.readSizes, siteModule} {
		if reason := read(o); reason != "" {
			return nil, reason
		}
	}
	return s, ""
}

func (s *Settings) readBackends(o Options) string {
	v, _ := o.Raw("fileserver_backend")
	list, _ := v.([]any)
	if len(list) == 0 || list[0] != rootsBackend || slices.Contains(list[1:], any(rootsBackend)) {
		return fmt.Sprintf("fileserver_backend is %v: roots is not asked first", v)
	}
	s.Alone = len(list) == 1
	return ""
}

func (s *Settings) readRoots(o Options) string {
	v, _ := o.Raw("file_roots")
	envs, ok := v.(map[string]any)
	if !ok {
		return "file_roots is not a map"
	}
	s.Roots = make(map[string][]string, len(envs))
	for env, v := range envs {
		list, _ := v.([]any)
		dirs := make([]string, 0, len(list))
		for _, v := range list {
			dir, ok := v.(string)
			if !ok || !path.IsAbs(dir) || strings.HasPrefix(dir, "//") || strings.ContainsRune(dir, 0) ||
				!utf8.ValidString(dir) {
				return fmt.Sprintf("file_roots of %s: %v is not an absolute path", env, v)
			}
			dirs = append(dirs, dir)
		}
		s.Roots[env] = dirs
	}
	return ""
}

func (s *Settings) readIgnores(o Options) string {
	expressions, ok := readTexts(o, "file_ignore_regex")
	globs, ok2 := readTexts(o, "file_ignore_glob")
	if !ok || !ok2 {
		return "file_ignore_regex or file_ignore_glob is not a list of strings"
	}
	var err error
	if s.ignore, err = newIgnorer(expressions, globs); err != nil {
		return err.Error()
	}
	s.byRegex = len(expressions) > 0
	return ""
}

// readTexts reads a list of texts; what is false in Python is none.
func readTexts(o Options, name string) ([]string, bool) {
	if !o.Bool(name) {
		return nil, true
	}
	v, _ := o.Raw(name)
	list, ok := v.([]any)
	out := o.Strings(name)
	return out, ok && len(out) == len(list)
}

func (s *Settings) readSizes(o Options) string {
	v, _ := o.Raw("file_buffer_size")
	n, ok := v.(int64)
	if !ok || n < 1 || n > maxBuffer {
		return fmt.Sprintf("file_buffer_size is %v", v)
	}
	s.Buffer, s.ListTime = int(n), defaultListTime
	if v, set := o.Raw("fileserver_list_cache_time"); set {
		n, ok := v.(int64)
		if !ok || n < 0 || n > int64(maxListTime/time.Second) {
			return fmt.Sprintf("fileserver_list_cache_time is %v", v)
		}
		s.ListTime = time.Duration(n) * time.Second
	}
	return ""
}

// siteModule looks for a file server module of the site's own, any of which may call itself roots.
func siteModule(o Options) string {
	for _, dir := range localmaster.ModuleDirs(o, "fileserver_dirs", "fileserver") {
		names, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("cannot find out whether the site has its own file server modules: %v", err)
		}
		for _, n := range names {
			if n.Name() != "__pycache__" && n.Name() != "__init__.py" {
				return "the site has its own file server module: " + filepath.Join(dir, n.Name())
			}
		}
	}
	return ""
}

// relevant are the options that decide what files are served.
var relevant = []string{
	"fileserver_backend", "file_roots", "fileserver_followsymlinks", "fileserver_ignoresymlinks", "hash_type",
	"file_buffer_size",
	"file_ignore_regex", "file_ignore_glob", "fileserver_list_cache_time", "cachedir", "user", "master_stats", "metrics",
	"tracing",
	"extension_modules", "module_dirs", "fileserver_dirs",
}

// Same says whether a master with options a serves files as one with options b.
func Same(a, b Options) bool { return localmaster.SameOptions(a, b, relevant) }

// listEnvs lists the environments (roots.envs).
func (s *Settings) listEnvs() []string { return slices.Sorted(maps.Keys(s.Roots)) }

// envDirs are the roots of an environment; known says whether there is such an environment. dynamic: it stands in
// __env__'s.
func (s *Settings) envDirs(env string) (dirs []string, known, dynamic bool) {
	dirs, known = s.Roots[env]
	if known && env != dynamicEnv {
		return dirs, true, false
	}
	all, ok := s.Roots[dynamicEnv]
	if !ok {
		return nil, false, false
	}
	if !plainEnv(env) {
		return nil, true, true
	}
	dirs = make([]string, len(all))
	for i, d := range all {
		dirs[i] = strings.ReplaceAll(d, dynamicEnv, env)
	}
	return dirs, true, true
}

// isHidden says whether a path leads to where this process sees something else than the master.
func (s *Settings) isHidden(name string) bool {
	if len(s.Hidden) == 0 {
		return false
	}
	name = realPath(name)
	return slices.ContainsFunc(s.Hidden, func(dir string) bool { return isInside(name, dir) })
}

// plainEnv says whether the name of an environment stays in its place when it is put into a path.
func plainEnv(env string) bool {
	if env == "" || env[0] == '/' || strings.ContainsRune(env, 0) {
		return false
	}
	for _, part := range strings.Split(env, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}
