package localmaster

import (
	"os"
	"path/filepath"
	"reflect"
)

// Options are a master's effective options, for code that does some of its work in its place. Config implements it.
type Options interface {
	Raw(name string) (any, bool)
	Bool(name string) bool
	Text(name string) string
	Strings(name string) []string
}

// SameOptions says whether the options of these names are the same in both.
func SameOptions(a, b Options, names []string) bool {
	for _, name := range names {
		x, had := a.Raw(name)
		y, has := b.Raw(name)
		if had != has || !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// Enabled says whether a feature of 3008 that has a map of options is on.
func Enabled(o Options, name string) bool {
	v, _ := o.Raw(name)
	m, _ := v.(map[string]any)
	on, _ := m["enabled"].(bool)
	return on
}

// ModuleDirs lists where a master looks for modules of the site's own of a kind (salt/loader/__init__.py _module_dirs):
// in the directories of the option own, and in those of that name below others.
func ModuleDirs(o Options, own, name string) []string {
	dirs := append([]string(nil), o.Strings(own)...)
	for _, dir := range append([]string{o.Text("extension_modules")}, o.Strings("module_dirs")...) {
		if dir != "" {
			dirs = append(dirs, filepath.Join(dir, name))
		}
	}
	return dirs
}

// SiteModule looks in directories for a module that takes the place of one that Salt brings along; empty: there is
// none.
func SiteModule(dirs []string, module string) (path string) {
	for _, dir := range dirs {
		for _, suffix := range []string{".py", ".pyc", ".so", ""} {
			path := filepath.Join(dir, module+suffix)
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}
