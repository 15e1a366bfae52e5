package generator

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/paths"
	"saltclusterd/sidecar/localmaster"
)

// witnessUser is whom a node without a salt-master runs as; the package makes the account.
const witnessUser = "saltclusterd"

// open are the places that the unit leaves open itself (ReadWritePaths=, StateDirectory=, RuntimeDirectory=).
var open = []string{"/etc/salt", "/var", "/srv", "/run/saltclusterd"}

// dropIn renders the drop-in. master is nil on a witness. exists tells whether a directory is there.
func dropIn(cfg *config.Config, master *localmaster.Config, exists func(string) bool) []byte {
	var b strings.Builder
	b.WriteString("# Made from the configuration of salt-master and saltclusterd whenever systemd reads its units\n" +
		"# (systemctl daemon-reload). Overrule it in a drop-in whose name sorts after this one's.\n[Service]\n")
	user := witnessUser
	if master != nil {
		user = master.User
	}
	if accountName.MatchString(user) {
		fmt.Fprintf(&b, "User=%s\n", user)
	} else {
		fmt.Fprintf(&b, "# the option user is not an account name: %.40q\n", user)
	}
	used := usedDirs(cfg, master)
	seen := used
	if master != nil {
		seen = append(slices.Clone(used), master.SockDir, followLinks(master.SockDir))
	}
	if slices.ContainsFunc(seen, isTemporary) {
		b.WriteString("PrivateTmp=no\n")
	}
	var there []string
	for _, dir := range closedDirs(used) {
		switch base := nearestExisting(dir, exists); {
		case strings.ContainsFunc(dir, isControl):
		case base == "/":
			fmt.Fprintf(&b, "# not there: %s\n", dir)
		default:
			there = append(there, base)
		}
	}
	slices.Sort(there)
	for _, dir := range slices.Compact(there) {
		fmt.Fprintf(&b, "ReadWritePaths=%s\n", quotePath(dir))
	}
	return []byte(b.String())
}

// accountName is what systemd takes for one, and numeric ids.
var accountName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}\$?$`)

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// quotePath writes a path for a list in a unit file: %% is a %, and quotes keep blanks together.
func quotePath(path string) string {
	path = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(path)
	return `"` + path + `"`
}

// usedDirs are the directories that saltclusterd writes to, where their links lead: what is open is so by that path.
func usedDirs(cfg *config.Config, master *localmaster.Config) (dirs []string) {
	all := []string{cfg.Paths.StateDir, cfg.Paths.RunDir, filepath.Dir(cfg.Paths.AdminSocket), cfg.Cluster.PKIDir}
	if master != nil {
		all = append(all, master.PkiDir, master.CacheDir, filepath.Dir(master.Path))
		for _, option := range []string{localmaster.FileRoots, localmaster.PillarRoots} {
			for _, dirs := range master.Roots(option) {
				all = append(all, dirs...)
			}
		}
	}
	for _, dir := range all {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && dir != "/" {
			dirs = append(dirs, followLinks(dir))
		}
	}
	if master != nil {
		dirs = append(dirs, linkedDirs(master.PkiDir)...)
		dirs = append(dirs, linkedDirs(master.CacheDir)...)
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "/" })
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// closedDirs are those of the directories that the unit has closed.
func closedDirs(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(open, func(o string) bool { return paths.Within(dir, o) })
	})
}

// isTemporary directories are the service's own, unless something of Salt's is in them.
func isTemporary(dir string) bool { return paths.Within(dir, "/tmp") || paths.Within(dir, "/var/tmp") }

// nearestExisting is the path itself or the directory above it that exists: what is made later is made there.
func nearestExisting(path string, exists func(string) bool) string {
	for path != "/" && !exists(path) {
		path = filepath.Dir(path)
	}
	return path
}
