package unshare

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/paths"
)

// Tree is a directory that is to be moved.
type Tree struct {
	Name string `json:"name"`           // for people: pki_dir, jobs, file_roots base 0
	From string `json:"from"`           // on the share, without links
	To   string `json:"to"`             // on this host's disk
	Link string `json:"link,omitempty"` // the link whose place To takes; empty: the master's configuration will name To
}

// Edit is a change that a person must make: the option is set in a file of master.d, and what Salt merges no drop-in
// can take away.
type Edit struct {
	File   string `json:"file"`
	Option string `json:"option"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Plan is what isolates one master.
type Plan struct {
	Trees   []Tree         `json:"trees"`
	Options map[string]any `json:"options"` // of the master's drop-in
	Edits   []Edit         `json:"edits,omitempty"`
	Notes   []string       `json:"notes,omitempty"`   // what stays on the share
	Refused []string       `json:"refused,omitempty"` // why it cannot be done
}

// Master is what is known of the master's configuration.
type Master struct {
	ConfigFile string
	PkiDir     string
	CacheDir   string
	Roots      map[string]map[string][]string // file_roots, pillar_roots: environment, directories
	SetBy      func(option string) string     // file that sets an option; empty: a default
	Others     map[string]string              // other options that are paths
	OwnDirs    map[string]string              // what must not be on the share, by option
}

// Make plans to move what is on the share to directories in to.
func Make(m Master, to string, onShare func(path string) bool) Plan {
	p := &planner{m: m, to: filepath.Clean(to), onShare: onShare, moved: map[string]string{},
		plan: Plan{Options: map[string]any{}}}
	p.checkPlan()
	if len(p.plan.Refused) > 0 {
		return p.plan
	}
	p.findSources()
	p.planPKI()
	p.planRoots()
	p.planLinks()
	p.planOthers()
	if len(p.plan.Trees) == 0 {
		p.refusePlan("nothing of this master is on a share")
	}
	return p.plan
}

type planner struct {
	m       Master
	to      string
	onShare func(string) bool
	moved   map[string]string // original, without links: copy
	plan    Plan
}

func (p *planner) refusePlan(format string, args ...any) {
	p.plan.Refused = append(p.plan.Refused, fmt.Sprintf(format, args...))
}

func (p *planner) checkPlan() {
	switch {
	case !filepath.IsAbs(p.to):
		p.refusePlan("%q is not an absolute path", p.to)
		return
	case p.onShare(p.to):
		p.refusePlan("%s is on the share itself: name a directory on this host's own disk", p.to)
	}
	if p.onShare(p.m.CacheDir) {
		p.refusePlan("cachedir (%s) as a whole is on the share: give this master a cachedir of its own first, with links to what is shared", p.m.CacheDir)
	}
	if p.onShare(filepath.Dir(p.m.ConfigFile)) {
		p.refusePlan("the master's configuration (%s) is on the share: it would change for all masters at once", p.m.ConfigFile)
	}
	for _, option := range slices.Sorted(maps.Keys(p.m.OwnDirs)) {
		if p.onShare(p.m.OwnDirs[option]) {
			p.refusePlan("%s (%s) is on the share: two nodes must not share it", option, p.m.OwnDirs[option])
		}
	}
}

// findSources decides for each directory on the share where its copy goes; what is inside of another one stays inside
// of it.
func (p *planner) findSources() {
	named := map[string]string{} // original: name of the copy
	add := func(dir, name string) {
		if !filepath.IsAbs(dir) || !p.onShare(dir) {
			return
		}
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && named[resolved] == "" {
			named[resolved] = name
		}
	}
	add(p.m.PkiDir, "pki")
	for _, option := range slices.Sorted(maps.Keys(p.m.Roots)) {
		for _, env := range slices.Sorted(maps.Keys(p.m.Roots[option])) {
			for i, dir := range p.m.Roots[option][env] {
				add(dir, filepath.Join(option, fileName(env), fmt.Sprint(i)))
			}
		}
	}
	for _, resolved := range slices.Sorted(maps.Keys(named)) { // a directory before what is in it
		outer := ""
		for other := range p.moved {
			if paths.Within(resolved, other) && len(other) > len(outer) {
				outer = other
			}
		}
		if outer != "" {
			p.moved[resolved] = filepath.Join(p.moved[outer], strings.TrimPrefix(resolved, outer))
			continue
		}
		p.moved[resolved] = filepath.Join(p.to, named[resolved])
		p.plan.Trees = append(p.plan.Trees, Tree{Name: strings.ReplaceAll(named[resolved], "/", " "), From: resolved,
			To: p.moved[resolved]})
	}
}

// fileName makes the name of an environment one of a directory.
func fileName(env string) string {
	if env == "" || env == "." || env == ".." || strings.ContainsAny(env, "/\x00") {
		return fmt.Sprintf("%x", env)
	}
	return env
}

// copyOf is where a directory will be; false when it stays.
func (p *planner) copyOf(dir string) (string, bool) {
	if !filepath.IsAbs(dir) {
		return dir, false
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir, false
	}
	if to, ok := p.moved[resolved]; ok {
		return to, true
	}
	return dir, false
}

func (p *planner) planPKI() {
	if to, ok := p.copyOf(p.m.PkiDir); ok {
		p.plan.Options["pki_dir"] = to
		return
	}
	p.refusePlan("pki_dir (%s) is not on the share, or does not exist", p.m.PkiDir)
}

func (p *planner) planRoots() {
	for _, option := range slices.Sorted(maps.Keys(p.m.Roots)) {
		all, changed := map[string]any{}, []Edit{}
		for _, env := range slices.Sorted(maps.Keys(p.m.Roots[option])) {
			dirs := []any{}
			for _, dir := range p.m.Roots[option][env] {
				to, ok := p.copyOf(dir)
				if ok {
					changed = append(changed, Edit{File: p.m.SetBy(option), Option: option, From: dir, To: to})
				} else if filepath.IsAbs(dir) && p.onShare(dir) {
					p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s of %s names %s on the share, which does not exist", option, env,
						dir))
				}
				dirs = append(dirs, to)
			}
			all[env] = dirs
		}
		switch file := p.m.SetBy(option); {
		case len(changed) == 0:
		case file == "" || file == p.m.ConfigFile:
			p.plan.Options[option] = all
		default:
			p.plan.Edits = append(p.plan.Edits, changed...)
		}
	}
}

// copyPrefix begins the name of a copy beside the link whose place it takes.
const copyPrefix = ".saltclusterd-isolated."

// planLinks finds the links in cachedir that lead to the share.
func (p *planner) planLinks() {
	entries, err := os.ReadDir(p.m.CacheDir)
	if err != nil {
		p.refusePlan("cachedir cannot be read: %v", err)
		return
	}
	for _, e := range entries {
		path := filepath.Join(p.m.CacheDir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), copyPrefix):
			continue
		case e.IsDir() && p.onShare(path):
			p.refusePlan("%s is a mount of the share: unmount it and replace it with a link first", path)
		case e.Type() == os.ModeSymlink && p.onShare(path):
			resolved, err := filepath.EvalSymlinks(path)
			if err != nil {
				p.refusePlan("%s leads to nothing: %v", path, err)
				continue
			}
			p.plan.Trees = append(p.plan.Trees, Tree{Name: e.Name(), From: resolved,
				To: filepath.Join(p.m.CacheDir, copyPrefix+e.Name()), Link: path})
		}
	}
}

// planOthers names what else of the master is on the share.
func (p *planner) planOthers() {
	for _, option := range slices.Sorted(maps.Keys(p.m.Others)) {
		if path := p.m.Others[option]; filepath.IsAbs(path) && p.onShare(path) {
			p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s stays on the share: %s", option, path))
		}
	}
}
