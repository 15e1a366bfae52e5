package localmaster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Own is what a master has for itself although minions reach it through any master: for each item a digest of what it has, "" when
// it has nothing. What cannot be read is not in it. Masters tell each other theirs; a digest shows no secret.
type Own map[string]string

// ownRule is what must hold of one kind of item. The part of an item's name before the colon is its kind, the rest a path.
type ownRule struct {
	// single: masters that have it must be one at most; otherwise all that name it must have the same.
	single         bool
	message, alone string // to the operator of a cluster, of a host that is in none yet
	fix            string
}

var ownRules = map[string]ownRule{
	"gpg": {
		message: "The keys that pillars are decrypted with (gpg_keydir, gpgkeys beside the master's configuration) are not the same on all masters: " +
			"whether a minion gets its secrets depends on the master that renders its pillar.",
		alone: "The keys that pillars are decrypted with lie on this host, and a pillar is rendered by any master.",
		fix:   "Copy that directory to the same place on every master, readable for the user of the salt-master.",
	},
	"vault": {
		message: "Some masters have the option vault and others have not: what minions or pillars ask of Vault through those fails.",
		alone:   "The option vault is set on this host, and minions ask any master.",
		fix:     "Set vault in the configuration of every master.",
	},
	"ext_pillar": {
		message: "The option ext_pillar is not the same on all masters: a minion's pillar depends on the master that renders it.",
		fix:     "Set the same ext_pillar in the configuration of every master.",
	},
	"autosign": {
		message: "The masters accept or reject new minions by files that are not the same (%s): which minion gets in depends on the master that it meets.",
		alone:   "New minions are accepted or rejected by what %s names, which lies on this host, and a minion may meet any master.",
		fix:     "Copy what %s names to the same place on every master.",
	},
	"file": {
		message: "%s, which the configuration of several masters names, is not the same on all of them: what happens depends on the master that is asked.",
		alone:   "%s, which the master's configuration names, lies on this host, and is used by whichever master is asked.",
		fix:     "Copy %s to the same place on every master, or keep it in file_roots (salt://), which the cluster replicates.",
	},
	"fileserver_events": {
		single: true,
		message: "Several masters fire salt/fileserver events for each edit (fileserver_events) and react to them: one edit is reacted to as many times " +
			"as there are such masters.",
		alone: "With fileserver_events each master that has this option fires salt/fileserver events for the same edit, and its reactor acts on them.",
		fix:   "Leave the reactor for salt/fileserver on one master only, or make sure that the reaction may run several times.",
	},
	"rest_cherrypy": {
		single: true,
		message: "Several masters run salt-api with rest_cherrypy, whose sessions (cookies, and X-Auth-Token of /login) are in the memory of one salt-api: " +
			"another one answers 401.",
		alone: "A session of rest_cherrypy (a cookie, or the X-Auth-Token of /login) is known to the salt-api of this host only: another one answers 401.",
		fix: "Have clients send an eauth token with each request to /run, which any salt-api takes, or have the load balancer keep a client on one " +
			"salt-api; see operate.md, salt-api.",
	},
	"git": {
		single: true,
		message: "%s is a git work tree on several masters and is replicated: git pull on one of them changes files on the others, where git then says " +
			"\"local changes would be overwritten\".",
		alone: "%s is a git work tree: its files are replicated, and what is edited on another master is a local change to git here.",
		fix:   "Pull on one master only and remove .git from %[1]s on the others; or use gitfs; or set cluster_roots_sync: 'off' and pull on each.",
	},
}

// OwnOf looks at what the master of cfg has for itself. replicated says whether the cluster replicates its roots.
func OwnOf(cfg *Config, replicated bool) Own {
	own := Own{}
	own["gpg"] = gpgKeys(gpgDir(cfg))
	own["vault"] = presence(cfg.Bool("vault"))
	v, _ := cfg.Raw("ext_pillar")
	own["ext_pillar"] = optionDigest(v)
	for _, name := range []string{"autosign_file", "autoreject_file"} {
		if path := cfg.Text(name); filepath.IsAbs(path) {
			own["autosign:"+name] = fileDigest(path)
		}
	}
	if dir := cfg.Text("autosign_grains_dir"); dir != "" {
		own["autosign:autosign_grains_dir"] = dirDigest(dir)
	}
	for _, r := range cfg.Reactors() {
		for _, path := range r.Paths {
			own.file(path)
		}
		if cfg.Bool("fileserver_events") && (r.hears("salt/fileserver/roots/update") || r.hears("salt/fileserver/gitfs/update")) {
			own["fileserver_events"] = "on"
		}
	}
	for _, name := range []string{"gitfs_privkey", "git_pillar_privkey", "winrepo_privkey"} {
		own.file(cfg.Text(name))
	}
	if cherryPySessions(cfg) {
		own["rest_cherrypy"] = "on"
	}
	if replicated {
		own.gitTrees(cfg)
	}
	maps.DeleteFunc(own, func(_, digest string) bool { return digest == unreadable })
	return own
}

// unreadable stands for what nothing can be said about.
const unreadable = "?"

// file notes the content of a file that the configuration names.
func (o Own) file(path string) {
	if filepath.IsAbs(path) {
		o["file:"+path] = fileDigest(path)
	}
}

func (o Own) gitTrees(cfg *Config) {
	for _, option := range []string{FileRoots, PillarRoots} {
		for _, dirs := range cfg.Roots(option) {
			for _, dir := range dirs {
				if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
					o["git:"+filepath.Clean(dir)] = "on"
				}
			}
		}
	}
}

// cherryPySessions says whether rest_cherrypy is configured, which starts it, and has sessions.
func cherryPySessions(cfg *Config) bool {
	v, ok := cfg.Raw("rest_cherrypy")
	settings, _ := v.(map[string]any)
	return ok && v != nil && settings["enable_sessions"] != false
}

// gpgDir is where the renderer gpg has its keys (salt/renderers/gpg.py _get_key_dir).
func gpgDir(cfg *Config) string {
	if dir := cfg.Text("gpg_keydir"); dir != "" {
		return dir
	}
	return filepath.Join(filepath.Dir(cfg.Path), "gpgkeys")
}

// gpgKeys is a digest of which private keys a directory of gpg has: their files are named after them.
func gpgKeys(dir string) string {
	entries, err := os.ReadDir(filepath.Join(dir, "private-keys-v1.d"))
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil:
		return unreadable
	}
	var keys []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".key") {
			keys = append(keys, e.Name())
		}
	}
	return digestOf([]byte(strings.Join(keys, "\n")))
}

// maxDigested bounds what is read of one file.
const maxDigested = 1 << 20

func fileDigest(path string) string {
	text, err := readSome(path, maxDigested)
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil:
		return unreadable
	}
	return digestOf(text)
}

// maxDirFiles bounds how many files of a directory are read.
const maxDirFiles = 100

// dirDigest is a digest of the files of a directory.
func dirDigest(dir string) string {
	entries, err := os.ReadDir(dir)
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil || len(entries) > maxDirFiles:
		return unreadable
	}
	var all []string
	for _, e := range entries {
		if sum := fileDigest(filepath.Join(dir, e.Name())); sum != unreadable {
			all = append(all, e.Name()+" "+sum)
		}
	}
	return digestOf([]byte(strings.Join(all, "\n")))
}

func optionDigest(v any) string {
	if !pyTrue(v) {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return unreadable
	}
	return digestOf(text)
}

func presence(is bool) string {
	if is {
		return "on"
	}
	return ""
}

// digestOf is short, for many of them go into one message between nodes; nothing has none.
func digestOf(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// CheckOwn says of a host that is in no cluster yet what it has for itself.
func CheckOwn(own Own) (found []Finding) {
	for _, item := range slices.Sorted(maps.Keys(own)) {
		if kind, path := ownKind(item); own[item] != "" && ownRules[kind].alone != "" {
			found = append(found, ownRules[kind].finding(kind, path, ownRules[kind].alone))
		}
	}
	return found
}

// CompareOwn says what masters must not have each for itself, or must have alike. Those that tell nothing (nil) are left out.
func CompareOwn(masters map[string]Own) (found []Finding) {
	items := map[string][]string{} // what each has
	for _, own := range masters {
		for item, digest := range own {
			items[item] = append(items[item], digest)
		}
	}
	for _, item := range slices.Sorted(maps.Keys(items)) {
		kind, path := ownKind(item)
		rule, known := ownRules[kind]
		have := slices.DeleteFunc(slices.Clone(items[item]), func(digest string) bool { return digest == "" })
		differ := slices.ContainsFunc(items[item], func(digest string) bool { return digest != items[item][0] })
		if known && (rule.single && len(have) > 1 || !rule.single && differ) {
			found = append(found, rule.finding(kind, path, rule.message))
		}
	}
	return found
}

func ownKind(item string) (kind, path string) {
	kind, path, _ = strings.Cut(item, ":")
	return kind, path
}

func (r ownRule) finding(kind, path, message string) Finding {
	fill := func(text string) string {
		if strings.Contains(text, "%") {
			return fmt.Sprintf(text, path)
		}
		return text
	}
	return Finding{Option: kind, Message: fill(message), Fix: fill(r.fix)}
}
