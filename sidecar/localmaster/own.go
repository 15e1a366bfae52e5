package localmaster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Own is what a master has for itself although minions reach it through any master: for each item a digest of what it
// has, "" when it has nothing. An item that cannot be read is left out. Masters tell each other theirs; a digest does
// not show a secret.
type Own map[string]string

// ownMore is an item that counts those which were too many, or too large, to be in Own.
const ownMore = "more"

// ownRule is what must hold of one kind of item. The part of an item's name before the colon is its kind, the rest a
// path.
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
		alone: "The keys that decrypt pillars are on this host only, but any master may render a pillar.",
		fix:   "Copy that directory to the same place on every master, readable by the salt-master's user.",
	},
	"vault": {
		message: "Some masters have the option vault and others do not: requests of minions or pillars to Vault fail on the others.",
		alone:   "The option vault is set on this host, and minions ask any master.",
		fix:     "Set vault in the configuration of every master.",
	},
	"ext_pillar": {
		message: "The option ext_pillar is not the same on all masters: a minion's pillar depends on the master that renders it.",
		fix:     "Set the same ext_pillar in the configuration of every master.",
	},
	"master_sign_pubkey": {
		message: "The masters do not sign the cluster's public key in the same way (master_sign_pubkey, master_sign.pem): a minion with " +
			"verify_master_pubkey_sign refuses the masters whose master_sign.pub it does not have, and one without it those that sign.",
		fix: "Set the same master_sign_pubkey in the configuration of every master, have the same master_sign.pem and master_sign.pub " +
			"in the pki_dir of each, and restart the salt-masters.",
	},
	"autosign": {
		message: "The masters accept or reject new minions by files that differ (%s): whether a minion is accepted depends on the master that it reaches.",
		alone:   "New minions are accepted or rejected by what %s names, which is on this host only, but a minion may reach any master.",
		fix:     "Copy what %s names to the same place on every master.",
	},
	"file": {
		message: "%s, which the configuration of several masters names, is not the same on all of them: what happens depends on the master that is asked.",
		alone:   "%s, which the master's configuration names, is on this host only, but any master may be asked.",
		fix:     "Copy %s to the same place on every master, or keep it in file_roots (salt://), which the cluster replicates.",
	},
	"files": {
		message: "What %s finds, which the configuration of several masters names, is not the same on all of them: what happens depends on the " +
			"master that is asked.",
		alone: "What %s finds, which the master's configuration names, is on this host only, but any master may be asked.",
		fix:   "Copy what %s finds to the same place on every master, or keep it in file_roots (salt://), which the cluster replicates.",
	},
	"modules": {
		message: "The masters have different modules of your own (pillar, tops, runners and others below extension_modules or module_dirs): " +
			"what minions and commands get depends on the master that answers.",
		alone: "This host's master has modules of your own below extension_modules or module_dirs, but any master may answer minions.",
		fix: "Run 'salt-run saltutil.sync_all' on every master for modules that are in file_roots, copy others to the same place on every master, " +
			"and restart the salt-masters.",
	},
	"passphrase": {
		message: "Some masters have a passphrase for the key of a git remote and others have not: these cannot read what it protects.",
		fix: "Set passphrase, below the remote in gitfs_remotes, winrepo_remotes or ext_pillar, or gitfs_passphrase, git_pillar_passphrase or " +
			"winrepo_passphrase, in the configuration of every master.",
	},
	"fileserver_events": {
		single: true,
		message: "Several masters fire salt/fileserver events for each edit (fileserver_events) and react to them: one edit is reacted to as many times " +
			"as there are such masters.",
		alone: "With fileserver_events each master that has this option fires salt/fileserver events for the same edit, and its reactor acts on them.",
		fix:   "Configure the reactor for salt/fileserver on one master only, or make sure that it may run several times.",
	},
	"rest_cherrypy": {
		single: true,
		message: "Several masters run salt-api with rest_cherrypy, whose sessions (cookies, and X-Auth-Token of /login) are in the memory of one salt-api: " +
			"another one answers 401.",
		alone: "A session of rest_cherrypy (a cookie, or the X-Auth-Token of /login) is known to the salt-api of this host only: another one answers 401.",
		fix: "Have clients send an eauth token with each request to /run, which any salt-api accepts, or have the load balancer keep a client on one " +
			"salt-api; see docs/how-to/load-balancer.md, salt-api.",
	},
	"git": {
		single: true,
		message: "%s belongs to a git work tree on several masters and is replicated: git pull on one of them changes files on the others, where git " +
			"then says \"local changes would be overwritten\".",
		alone: "%s belongs to a git work tree: its files are replicated, and what is edited on another master is a local change to git here.",
		fix:   "Pull on one master only and remove the work tree's .git on the others; or use gitfs; or set cluster_roots_sync: 'off' and pull on each.",
	},
}

// alikeOptions decide what a minion gets, whichever master it meets.
var alikeOptions = []string{"fileserver_backend", "gitfs_remotes", "master_tops", "peer", "peer_run", "mine_get",
	"file_recv", "state_top", "pillar_opts", "pillar_source_merging_strategy"}

// ruleOf finds the rule of one kind of item; a later version may have others.
func ruleOf(kind string) (ownRule, bool) {
	if rule, ok := ownRules[kind]; ok {
		return rule, true
	}
	if !slices.Contains(alikeOptions, kind) {
		return ownRule{}, false
	}
	return ownRule{
		message: "The option " + kind + " is not the same on all masters: what a minion gets depends on the master that answers it.",
		fix:     "Set the same " + kind + " in the configuration of every master.",
	}, true
}

// OwnOf looks at what the master of cfg has for itself. replicated says whether the cluster replicates its roots.
func OwnOf(cfg *Config, replicated bool) Own {
	own, r := Own{}, newReader()
	own["gpg"] = gpgKeys(gpgDir(cfg))
	own["vault"] = onOff(cfg.Bool("vault"))
	own["master_sign_pubkey"] = r.signDigest(cfg)
	for _, option := range append([]string{"ext_pillar"}, alikeOptions...) {
		v, _ := cfg.Raw(option)
		own[option] = optionDigest(v)
	}
	own["gitfs_remotes"] = gitfsDigest(cfg) // each master may have its own credentials
	own.addAutosign(cfg, r)
	own.addReactions(cfg, r)
	own.gitKeys(cfg, r)
	own["modules"] = r.modulesDigest(cfg)
	if cherryPySessions(cfg) {
		own["rest_cherrypy"] = "on"
	}
	if replicated {
		own.gitTrees(cfg)
	}
	own.dropDigest(unreadable)
	own.countMore(own.dropDigest(tooMuch))
	return own
}

// dropDigest removes the items of that digest, and says how many there were.
func (o Own) dropDigest(digest string) int {
	before := len(o)
	maps.DeleteFunc(o, func(_, d string) bool { return d == digest })
	return before - len(o)
}

func (o Own) moreCount() int {
	n, _ := strconv.Atoi(o[ownMore])
	return max(n, 0)
}

func (o Own) countMore(n int) {
	if n += o.moreCount(); n > 0 {
		o[ownMore] = strconv.Itoa(n)
	}
}

// Bounded is what of it fits into so many items and, as JSON, bytes, and how many did not. Masters that name the same
// leave out the same.
func (o Own) Bounded(items, bytes int) Own {
	out := Own{}
	names := slices.Collect(maps.Keys(o))
	slices.SortFunc(names, compareItems)
	for i, name := range names {
		text, _ := json.Marshal(Own{name: o[name]})
		if bytes -= len(text); i >= items || bytes < 0 {
			out.countMore(len(names) - i)
			break
		}
		out[name] = o[name]
	}
	return out
}

// compareItems sorts what there is once on a master, the count of what is left out among it, before what may be there
// in any number.
func compareItems(a, b string) int {
	many := func(item string) int { return min(strings.Count(item, ":"), 1) }
	return cmp.Or(cmp.Compare(many(a), many(b)), cmp.Compare(a, b))
}

func (o Own) addAutosign(cfg *Config, r *boundedReader) {
	for _, name := range []string{"autosign_file", "autoreject_file"} {
		if path := cfg.Text(name); filepath.IsAbs(path) {
			o["autosign:"+name] = r.fileDigest(path)
		}
	}
	if dir := cfg.Text("autosign_grains_dir"); dir != "" {
		o["autosign:autosign_grains_dir"] = r.dirDigest(dir)
	}
}

func (o Own) addReactions(cfg *Config, r *boundedReader) {
	for _, reactor := range cfg.Reactors() {
		for _, formula := range reactor.Formulas {
			o.addPath(formula, r)
		}
		if cfg.Bool("fileserver_events") && (reactor.matchesTag("salt/fileserver/roots/update") ||
			reactor.matchesTag("salt/fileserver/gitfs/update")) {
			o["fileserver_events"] = "on"
		}
	}
}

// addPath notes the content of what the configuration names by an absolute path or glob; salt:// is the same for all
// masters.
func (o Own) addPath(path string, r *boundedReader) {
	switch {
	case !filepath.IsAbs(path):
	case hasMagic(path):
		o["files:"+path] = r.globDigest(path)
	default:
		o["file:"+path] = r.fileDigest(path)
	}
}

// gitfsDigest is a digest of which repositories gitfs has, in their order; they mean nothing to other backends.
func gitfsDigest(cfg *Config) string {
	if !slices.ContainsFunc(cfg.Strings("fileserver_backend"), func(name string) bool {
		return name == "git" || name == "gitfs"
	}) {
		return ""
	}
	v, _ := cfg.Raw("gitfs_remotes")
	list, _ := v.([]any)
	var ids []string
	for _, remote := range list {
		if url, isText := remote.(string); isText {
			ids = append(ids, credentials.ReplaceAllString(url, "//"))
		}
		for _, with := range remotesOf("gitfs", []any{remote}) {
			ids = append(ids, with.id)
		}
	}
	return digestOf([]byte(strings.Join(ids, "\n")))
}

// gitKeys notes the keys that git remotes are read with, and for which of them there is a passphrase. That itself is a
// secret.
func (o Own) gitKeys(cfg *Config, r *boundedReader) {
	var locked []string
	for _, remote := range gitRemotes(cfg) {
		for _, name := range []string{"privkey", "pubkey"} {
			if path, _ := remote.params[name].(string); filepath.IsAbs(path) {
				o["file:"+path] = r.fileDigest(path)
			}
		}
		if pyTrue(remote.params["passphrase"]) {
			locked = append(locked, remote.role+" "+remote.id)
		}
	}
	slices.Sort(locked)
	o["passphrase"] = digestOf([]byte(strings.Join(locked, "\n")))
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

// CheckOwn says of a host that is in no cluster yet what it has for itself.
func CheckOwn(own Own) (found []Finding) {
	for _, item := range slices.Sorted(maps.Keys(own)) {
		kind, path := ownKind(item)
		if rule, _ := ruleOf(kind); own[item] != "" && rule.alone != "" {
			found = append(found, rule.newFinding(kind, path, rule.alone))
		}
	}
	found = firstOfEach(found)
	if n := own.moreCount(); n > 0 {
		found = append(found, Finding{
			Option:  ownMore,
			Message: fmt.Sprintf("The files named in the master's configuration are too many or too large: %d of its settings were not checked.", n),
			Fix:     "Keep what they name in the same place on every master, or in file_roots (salt://), which the cluster replicates.",
		})
	}
	return found
}

// CompareOwn says what masters must not have each for itself, or must have alike. Those that tell nothing (nil) are
// left out.
func CompareOwn(masters map[string]Own) (found []Finding) {
	items, more := map[string][]string{}, 0 // what each has
	for _, own := range masters {
		more = max(more, own.moreCount())
		for item, digest := range own {
			items[item] = append(items[item], digest)
		}
	}
	for _, item := range slices.Sorted(maps.Keys(items)) {
		kind, path := ownKind(item)
		rule, known := ruleOf(kind)
		have := slices.DeleteFunc(slices.Clone(items[item]), func(digest string) bool { return digest == "" })
		differ := slices.ContainsFunc(items[item], func(digest string) bool { return digest != items[item][0] })
		if known && (rule.single && len(have) > 1 || !rule.single && differ) {
			found = append(found, rule.newFinding(kind, path, rule.message))
		}
	}
	found = firstOfEach(found)
	if more > 0 && len(masters) > 1 {
		found = append(found, Finding{
			Option:  ownMore,
			Message: fmt.Sprintf("The files named in a master's configuration are too many or too large: %d of its settings are not compared with the others'.", more),
			Fix:     "Compare by hand what they name, or keep it in file_roots (salt://), which the cluster replicates.",
		})
	}
	return found
}

// shownOfEach bounds how many findings of one kind are shown.
const shownOfEach = 8

// firstOfEach puts a count in the place of findings of one kind when they are many.
func firstOfEach(found []Finding) (out []Finding) {
	seen := map[string]int{}
	for _, f := range found {
		if seen[f.Option]++; seen[f.Option] <= shownOfEach {
			out = append(out, f)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		if n := seen[kind] - shownOfEach; n > 0 {
			out = append(out, Finding{
				Option: kind, Message: fmt.Sprintf("The same applies to %d more (%s) named in the master's configuration.", n,
					kind), Fix: "Do the same for each of them.",
			})
		}
	}
	return out
}

func ownKind(item string) (kind, path string) {
	kind, path, _ = strings.Cut(item, ":")
	return kind, path
}

func (r ownRule) newFinding(kind, path, message string) Finding {
	fill := func(text string) string {
		if strings.Contains(text, "%") {
			return fmt.Sprintf(text, path)
		}
		return text
	}
	return Finding{Option: kind, Message: fill(message), Fix: fill(r.fix)}
}
