package localmaster

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/fnmatch"
)

// statusBeacon is a tag that thorium's status.reg counts as a sign of life.
const statusBeacon = "salt/beacon/minion/status/check"

// maxFormula bounds what is read of a formula of thorium or of a reactor.
const maxFormula = 256 << 10

// Bounds on what is read of all formulas of thorium and of reactors.
const (
	maxFormulas     = 500
	maxFormulasSize = 16 << 20
)

// takesKeys finds in a formula what deletes or rejects minion keys: thorium's key.timeout, and the wheel and runner
// functions.
var takesKeys = regexp.MustCompile(`\bkey\.(timeout|delete|delete_dict|reject|reject_dict)\b`)

// CheckActors lists what in the configuration acts by the events of this master's bus as if every minion sent them
// there. everyMaster says whether an event of a minion with that tag fires on every master; see cluster_event_policy.
func CheckActors(cfg *Config, everyMaster func(tag string) bool) []Finding {
	c := &checker{cfg: cfg, reader: &boundedReader{files: maxFormulas, bytes: maxFormulasSize}}
	c.checkThorium(everyMaster)
	c.checkReactors()
	return c.found
}

// checkThorium reports formulas that take keys away from minions whose beacons this master has not seen.
func (c *checker) checkThorium(everyMaster func(tag string) bool) {
	engines, ok := c.cfg.Raw("engines")
	if !ok || !namesModule(engines, "thorium") || everyMaster(statusBeacon) {
		return
	}
	for _, path := range c.thoriumFormulas() {
		if c.fileMatches(path, takesKeys) {
			c.addFinding(true, "engines",
				fmt.Sprintf("The engine thorium removes keys of minions without recent events (%s), and it gets only the events that fire on this master: the others lose their keys.", path), "Set cluster_event_policy: {'salt/beacon/*/status/*': all} "+
					"in saltclusterd's configuration on every node, or remove key.timeout from the formula and use 'saltclusterctl minions list --state lost'.")
			return
		}
	}
}

// thoriumFormulas lists the formulas below thorium_roots.
func (c *checker) thoriumFormulas() (paths []string) {
	for _, dirs := range c.cfg.Roots("thorium_roots") {
		for _, dir := range dirs {
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if len(paths) >= maxFormulas {
					return fs.SkipAll
				}
				if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".sls" {
					paths = append(paths, path)
				}
				return nil // an unreadable directory holds nothing that the master could read
			})
		}
	}
	slices.Sort(paths)
	return paths
}

// checkReactors reports reactions to presence events that take keys away.
func (c *checker) checkReactors() {
	for _, r := range c.cfg.Reactors() {
		if !r.matchesTag("salt/presence/change") && !r.matchesTag("salt/presence/present") {
			continue
		}
		for _, formula := range r.Formulas {
			for _, path := range c.cfg.formulaFiles(formula) {
				if c.fileMatches(path, takesKeys) {
					c.addFinding(false, "reactor",
						fmt.Sprintf("A reaction to presence events removes keys (%s), so minions lose their keys when the network fails for a moment.", path), "Remove it, and use 'saltclusterctl minions list --state lost'.")
					return
				}
			}
		}
	}
}

// fileMatches says whether a small file has what the expression finds; one that cannot be read has not.
func (c *checker) fileMatches(path string, expr *regexp.Regexp) bool {
	text, err := c.reader.readFile(path, maxFormula)
	return err == nil && expr.Match(text)
}

// readSome reads a regular file of at most so many bytes. It neither waits for a named pipe nor reads on while a file
// grows.
func readSome(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, fs.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("read %s: %w", path, fs.ErrInvalid)
	}
	return text, err
}

// matchesTag says whether an event with that tag is reacted to.
func (r Reactor) matchesTag(tag string) bool {
	glob, err := fnmatch.Compile(r.Tag)
	return err == nil && glob.MatchString(tag)
}

// Reactor is one entry of the option reactor.
type Reactor struct {
	Tag      string   // a glob
	Formulas []string // as they are written: paths, globs, salt://
}

// Reactors reads the option reactor, or the file that it names (salt.utils.reactor list_reactors).
func (c *Config) Reactors() (out []Reactor) {
	list, _ := c.reactorMap().([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		if len(m) != 1 {
			continue
		}
		for tag, v := range m {
			out = append(out, Reactor{Tag: tag, Formulas: stringList(v)})
		}
	}
	slices.SortStableFunc(out, func(a, b Reactor) int { return cmp.Compare(a.Tag, b.Tag) })
	return out
}

func (c *Config) reactorMap() any {
	path, isFile := c.opts["reactor"].(string)
	if !isFile {
		return c.opts["reactor"]
	}
	text, err := readSome(path, maxFormula)
	if err != nil {
		return nil
	}
	v, _ := parseYAML(text) // of one that cannot be read the master makes nothing either
	return v
}

// formulaFiles lists the files of this host that a reaction is rendered from (salt.utils.reactor render_reaction).
func (c *Config) formulaFiles(formula string) []string {
	switch {
	case strings.HasPrefix(formula, saltURL):
		return c.inFileRoots(formula)
	case filepath.IsAbs(formula):
		return pyGlob(formula)
	}
	return nil
}

const saltURL = "salt://"

// inFileRoots finds the file of a salt:// URL (salt.utils.url.parse, salt.fileserver.roots find_file); none or one.
func (c *Config) inFileRoots(url string) []string {
	path, env := splitSaltURL(url)
	if env = cmp.Or(env, c.Text("saltenv"), "base"); !filepath.IsLocal(path) {
		return nil
	}
	roots := c.Roots(FileRoots)
	dirs, ok := roots[env]
	if !ok {
		dirs = roots["__env__"]
	}
	for _, dir := range dirs {
		if !ok {
			dir = strings.ReplaceAll(dir, "__env__", env)
		}
		full := filepath.Join(dir, path)
		if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() {
			return []string{full}
		}
	}
	return nil
}

// splitSaltURL returns the path of a URL, and the environment that it names; ?env= is long without a meaning.
func splitSaltURL(url string) (path, env string) {
	path = strings.TrimPrefix(url, saltURL)
	if before, _, old := strings.Cut(path, "?env="); old {
		path = before
	} else {
		path, env, _ = strings.Cut(path, "?saltenv=")
	}
	return strings.TrimLeft(path, "/"), env
}
