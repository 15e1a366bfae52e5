package mines

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/pyregexp"
)

// Options are the master's effective options.
type Options = localmaster.Options

// The versions whose code this package mirrors.
const (
	minMajor = 3006
	maxMajor = 3008
	// splitSince is the first version with a bank for mines.
	splitSince = 3008
)

// localfs is the one cache driver whose files are known here.
const localfs = "localfs"

// Settings are what a master of some version and options does with mines.
type Settings struct {
	major    int
	cacheDir string
	unread   string // why _mine_get is left to the master; empty: it is not
	acl      *acl   // nil: every minion may ask for every function
}

// acl is the option mine_get.
type acl struct {
	nothing bool // it is not a map: no minion gets anything
	rules   []rule
}

// rule says which functions minions may ask for.
type rule struct {
	minions   *regexp.Regexp
	functions []*regexp.Regexp
}

// Native returns what a master of that version with these options does with mines, or in words for an operator why only
// it can know. It also looks for a cache module of the site's own, so ask again when the master restarts.
func Native(o Options, major int) (*Settings, string) {
	switch {
	case major < minMajor || major > maxMajor:
		return nil, fmt.Sprintf("Salt %d is not a version whose mines are known here", major)
	case o.Text("cache") != localfs:
		return nil, fmt.Sprintf("cache is %q, not localfs", o.Text("cache"))
	case !o.Bool("minion_data_cache") && !o.Bool("enforce_mine_cache"):
		return nil, "minion_data_cache is off"
	case o.Bool("memcache_expire_seconds"):
		return nil, "memcache_expire_seconds is set: the master's processes remember mines"
	case o.Bool("cluster_id"):
		return nil, "cluster_id is set: the master is in a cluster of its own"
	case o.Bool("master_stats"):
		return nil, "master_stats is on: the master's statistics would leave mines out"
	case localmaster.Enabled(o, "metrics"), localmaster.Enabled(o, "tracing"):
		return nil, "metrics or tracing of the master are enabled: they would leave mines out"
	case o.Text("cachedir") == "":
		return nil, "the master has no cachedir"
	}
	if path := localmaster.SiteModule(localmaster.ModuleDirs(o, "cache_dirs", "cache"), localfs); path != "" {
		return nil, "the site has its own cache module " + path
	}
	s := &Settings{major: major, cacheDir: o.Text("cachedir")}
	s.acl, s.unread = readACL(o)
	switch {
	case s.unread != "":
	case o.Bool("enable_ssh_minions"):
		s.unread = "enable_ssh_minions is on: targets include a roster"
	case major < splitSince && o.Bool("key_cache"):
		s.unread = "key_cache is set: the master matches minions of a list that it writes from time to time"
	}
	return s, ""
}

// relevant are the options that decide how mines are handled.
var relevant = []string{
	"cache", "minion_data_cache", "enforce_mine_cache", "memcache_expire_seconds", "cluster_id", "master_stats", "metrics",
	"tracing",
	"cachedir", "extension_modules", "module_dirs", "cache_dirs", "mine_get", "enable_ssh_minions", "key_cache", "user",
}

// Same says whether a master with options a handles mines as one with options b.
func Same(a, b Options) bool { return localmaster.SameOptions(a, b, relevant) }

// readACL reads mine_get, whose patterns are expressions for re.match: minions by functions.
func readACL(o Options) (_ *acl, reason string) {
	v, ok := o.Raw("mine_get")
	if !ok {
		return nil, ""
	}
	m, ok := v.(map[string]any)
	if !ok {
		return &acl{nothing: true}, ""
	}
	a := &acl{}
	for minions, functions := range m {
		if maybeNoText(minions) {
			return nil, fmt.Sprintf("mine_get: the key %q may be no text", minions)
		}
		re, err := pyregexp.Match(minions)
		if err != nil {
			return nil, fmt.Sprintf("mine_get: the pattern %q: %v", minions, err)
		}
		r := rule{minions: re}
		list, _ := functions.([]any)
		for _, f := range list {
			name, ok := f.(string)
			if !ok {
				return nil, fmt.Sprintf("mine_get: a pattern of %q is not text", minions)
			}
			if re, err = pyregexp.Match(name); err != nil {
				return nil, fmt.Sprintf("mine_get: the pattern %q: %v", name, err)
			}
			r.functions = append(r.functions, re)
		}
		a.rules = append(a.rules, r)
	}
	return a, ""
}

// maybeNoText says whether a key of an option may be the text of a key that was not text (null, a boolean or a number):
// a master fails on such keys.
func maybeNoText(key string) bool {
	switch key {
	case "", "None", "True", "False":
		return true
	}
	_, err := strconv.ParseFloat(key, 64)
	return !errors.Is(err, strconv.ErrSyntax)
}

// allowedFunctions are those of the functions that a minion may ask for.
func (a *acl) allowedFunctions(minion string, functions []string) []string {
	if a == nil {
		return functions
	}
	var out []string
	for _, f := range functions {
		if a.isAllowed(minion, f) {
			out = append(out, f)
		}
	}
	return out
}

func (a *acl) isAllowed(minion, function string) bool {
	for _, r := range a.rules {
		if !r.minions.MatchString(minion) {
			continue
		}
		for _, f := range r.functions {
			if f.MatchString(function) {
				return true
			}
		}
	}
	return false
}

// mineFile is where a minion's mine is below cachedir.
func (s *Settings) mineFile(minion string) string {
	if s.major < splitSince {
		return "minions/" + minion + "/mine.p"
	}
	return "mine/" + minion + ".p"
}

// bankFile is the file in which a master looks for a mine when it is not there.
func (s *Settings) bankFile(minion string) string {
	if s.major < splitSince {
		return "minions/" + minion + ".p"
	}
	return "mine.p"
}

// isOneLine says whether a text holds no line feed, which Python's expressions treat in their own way.
func isOneLine(s string) bool { return !strings.Contains(s, "\n") }
