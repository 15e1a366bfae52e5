package localmaster

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"saltclusterd/sidecar/fnmatch"
)

// statusBeacon is a tag that thorium's status.reg counts as a sign of life.
const statusBeacon = "salt/beacon/minion/status/check"

// maxFormula bounds what is read of a formula of thorium or of a reactor.
const maxFormula = 256 << 10

// maxFormulas bounds how many formulas of thorium are read.
const maxFormulas = 500

// takesKeys finds in a formula what deletes or rejects minion keys: thorium's key.timeout, and the wheel and runner functions.
var takesKeys = regexp.MustCompile(`\bkey\.(timeout|delete|delete_dict|reject|reject_dict)\b`)

// CheckActors lists what in the configuration acts by the events of this master's bus as if every minion sent them there.
// everyMaster says whether an event of a minion with that tag fires on every master; see cluster_event_policy.
func CheckActors(cfg *Config, everyMaster func(tag string) bool) []Finding {
	c := &checker{cfg: cfg}
	c.thorium(everyMaster)
	c.reactors()
	return c.found
}

// thorium reports formulas that take keys away from minions whose beacons this master has not seen.
func (c *checker) thorium(everyMaster func(tag string) bool) {
	engines, ok := c.cfg.Raw("engines")
	if !ok || !names(engines, "thorium") || everyMaster(statusBeacon) {
		return
	}
	for _, path := range c.thoriumFormulas() {
		if matches(path, takesKeys) {
			c.add(true, "engines", fmt.Sprintf("The engine thorium takes keys away from minions that it does not hear from (%s), and it hears only those "+
				"whose events fire on this master: the others lose their keys.", path), "Set cluster_event_policy: {'salt/beacon/*/status/*': all} "+
				"in saltclusterd's configuration on every node, or remove key.timeout from the formula and use 'saltclusterctl minions --lost'.")
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

// reactors reports reactions to presence events that take keys away.
func (c *checker) reactors() {
	for _, r := range c.cfg.Reactors() {
		if !r.hears("salt/presence/change") && !r.hears("salt/presence/present") {
			continue
		}
		for _, path := range r.Paths {
			if matches(path, takesKeys) {
				c.add(false, "reactor", fmt.Sprintf("A reaction to presence events takes keys away (%s), so a network that fails for a moment costs "+
					"minions their keys.", path), "Remove it, and use 'saltclusterctl minions --lost'.")
				return
			}
		}
	}
}

// matches says whether a small file has what the expression finds; one that cannot be read has not.
func matches(path string, expr *regexp.Regexp) bool {
	text, err := readSome(path, maxFormula)
	return err == nil && expr.Match(text)
}

// readSome reads a regular file of at most so many bytes.
func readSome(path string, most int64) ([]byte, error) {
	st, err := os.Stat(path) // not opened before it is known to be no pipe
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > most {
		return nil, fmt.Errorf("read %s: %w", path, fs.ErrInvalid)
	}
	return os.ReadFile(path)
}

// hears says whether an event with that tag is reacted to.
func (r Reactor) hears(tag string) bool {
	glob, err := fnmatch.Compile(r.Tag)
	return err == nil && glob.MatchString(tag)
}

// Reactor is one entry of the option reactor.
type Reactor struct {
	Tag   string   // a glob
	Paths []string // formulas that are files of this host; those of the file server are not among them
}

// Reactors reads the option reactor.
func (c *Config) Reactors() (out []Reactor) {
	list, _ := c.opts["reactor"].([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		for tag, v := range m {
			r := Reactor{Tag: tag}
			for _, formula := range stringList(v) {
				if filepath.IsAbs(formula) {
					r.Paths = append(r.Paths, formula)
				}
			}
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Reactor) int { return cmp.Compare(a.Tag, b.Tag) })
	return out
}
