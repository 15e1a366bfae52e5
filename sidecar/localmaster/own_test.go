package localmaster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

// writeTree writes files below a new directory, and returns that.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestCheckActors(t *testing.T) {
	const takes = "gone:\n  wheel.key.delete:\n    - args:\n      - match: {{ data['id'] }}\n"
	dir := writeTree(t, map[string]string{
		"timeout/clean.sls": "statreg:\n  status.reg\nkeydel:\n  key.timeout:\n    - delete: 90\n",
		"status/look.sls":   "statreg:\n  status.reg\n",
		"react.sls":         takes,
		"hidden/.react.sls": takes,
		"dev/react.sls":     takes,
		"roots/look.sls":    "a:\n  local.test.ping: []\n",
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "map.yaml"), []byte("- 'salt/presence/*': "+dir+"/react.sls\n"),
		0o600))
	roots := "file_roots: {base: [" + dir + "/roots, " + dir + "], __env__: [" + dir + "/__env__]}\n"
	thorium := func(roots string) string {
		return "engines: [{thorium: {}}]\nthorium_roots: {base: [" + filepath.Join(dir, roots) + "]}\n"
	}
	for name, c := range map[string]struct {
		text        string
		everyMaster bool
		option      string // of the finding; empty: none
		fatal       bool
	}{
		"nothing set":                     {"", false, "", false},
		"thorium that deletes":            {thorium("timeout"), false, "engines", true},
		"thorium that hears every minion": {thorium("timeout"), true, "", false},
		"thorium that only looks":         {thorium("status"), false, "", false},
		"thorium without formulas":        {thorium("nothing"), false, "", false},
		"formulas without thorium":        {"thorium_roots: {base: [" + dir + "/timeout]}\n", false, "", false},
		"a reaction to presence": {"reactor: [{'salt/presence/*': [" + dir + "/react.sls]}]\n", false, "reactor",
			false},
		"the same to what somebody fires": {"reactor: [{'salt/cloud/*/destroyed': [" + dir + "/react.sls]}]\n", false, "",
			false},
		"a reaction that takes no keys": {"reactor: [{'salt/presence/*': [" + dir + "/status/look.sls]}]\n", false, "",
			false},
		"a reaction that cannot be read":   {"reactor: [{'salt/presence/*': [/nonexistent.sls]}]\n", false, "", false},
		"a reactor that is no list at all": {"reactor: {a: b}\n", false, "", false},
		"a glob of reactions": {"reactor: [{'salt/presence/*': '" + dir + "/re*.sls'}]\n", false, "reactor",
			false},
		"a glob that passes over it": {"reactor: [{'salt/presence/*': [" + dir + "/s*/*.sls]}]\n", false, "", false},
		"a glob of hidden files": {"reactor: [{'salt/presence/*': [" + dir + "/hidden/*.sls]}]\n", false, "",
			false},
		"a reaction in the roots": {roots + "reactor: [{'salt/presence/*': ['salt://react.sls']}]\n", false,
			"reactor", false},
		"one below an empty host": {roots + "reactor: [{'salt/presence/*': ['salt:///react.sls?env=prod']}]\n",
			false, "reactor", false},
		"one of another environment": {roots + "reactor: [{'salt/presence/*': ['salt://react.sls?saltenv=dev']}]\n",
			false, "reactor", false},
		"not in that environment": {roots + "reactor: [{'salt/presence/*': ['salt://look.sls?saltenv=dev']}]\n",
			false, "", false},
		"the master's environment": {roots + "saltenv: dev\nreactor: [{'salt/presence/*': ['salt://react.sls']}]\n",
			false, "reactor", false},
		"a glob in the roots is none": {roots + "reactor: [{'salt/presence/*': ['salt://*.sls']}]\n", false, "", false},
		"out of the roots": {roots + "reactor: [{'salt/presence/*': ['salt://../dev/react.sls']}]\n", false,
			"", false},
		"a reactor in a file": {"reactor: " + dir + "/map.yaml\n", false, "reactor", false},
		"an entry of two": {"reactor: [{'salt/presence/*': [" + dir + "/react.sls], a: []}]\n", false, "",
			false},
	} {
		t.Run(name, func(t *testing.T) {
			found := CheckActors(loadText(t, 3006, c.text), func(string) bool { return c.everyMaster })
			if c.option == "" {
				if len(found) > 0 {
					t.Errorf("findings %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Option != c.option || found[0].Fatal != c.fatal || found[0].Fix == "" {
				t.Errorf("findings %+v", found)
			}
		})
	}
}

func signingKey(t *testing.T) string {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	return string(key.PEM())
}

// Each item of ownRules: what it takes to be found on a host alone, and on two masters of which one has it, or both, or
// each its own.
func TestMastersOwn(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"gpg/private-keys-v1.d/0123.key": "secret", "gpg/pubring.kbx": "", "gpg2/private-keys-v1.d/4567.key": "secret",
		"autosign": "web*\n", "autosign2": "db*\n", "grains/uuid": "1\n", "grains2/uuid": "2\n",
		"react.sls": "a:\n  local.test.ping: []\n", "git/.git/HEAD": "ref", "git/top.sls": "",
		"on/a.sls": "a", "id": "key", "id.pub": "key",
		"repo/.git": "gitdir: elsewhere", "repo/states/top.sls": "", "with/formulas/apache/.git/HEAD": "ref",
		"deep/a/b/c/.git/HEAD": "ref", "etc/.git/HEAD": "ref", "etc/.etckeeper": "", "etc/salt/top.sls": "",
		"mods/pillar/vars.py": "a", "mods/pillar/__pycache__/vars.pyc": "b", "mods/engines/e.py": "c",
		"mods2/pillar/vars.py": "a", "mods2/engines/e.py": "d", "mods3/tops/vars.py": "a",
		"pki/master_sign.pem": signingKey(t), "pki2/master_sign.pem": signingKey(t),
	})
	require.NoError(t, os.Symlink(filepath.Join(dir, "repo/states"), filepath.Join(dir, "link")))
	at := func(text string) string { return strings.ReplaceAll(text, "DIR", dir) }
	for name, c := range map[string]struct {
		one, other    string // options of two masters
		alone, differ string // what is found, "" nothing
	}{
		"gpg on both":         {at("gpg_keydir: DIR/gpg\n"), at("gpg_keydir: DIR/gpg\n"), "gpg", ""},
		"gpg on one":          {at("gpg_keydir: DIR/gpg\n"), "", "gpg", "gpg"},
		"other gpg keys":      {at("gpg_keydir: DIR/gpg\n"), at("gpg_keydir: DIR/gpg2\n"), "gpg", "gpg"},
		"no gpg keys":         {at("gpg_keydir: DIR/none\n"), "", "", ""},
		"vault on one":        {"vault: {server: {url: u}}\n", "", "vault", "vault"},
		"vault, other tokens": {"vault: {auth: {token: a}}\n", "vault: {auth: {token: b}}\n", "vault", ""},
		"the same signing key": {at("master_sign_pubkey: True\npki_dir: DIR/pki\n"), at("master_sign_pubkey: True\npki_dir: DIR/pki\n"),
			"", ""},
		"signing on one":   {at("master_sign_pubkey: True\npki_dir: DIR/pki\n"), "", "", "master_sign_pubkey"},
		"two signing keys": {at("master_sign_pubkey: True\npki_dir: DIR/pki\n"), at("master_sign_pubkey: True\npki_dir: DIR/pki2\n"), "", "master_sign_pubkey"},
		"a signing key that is not read": {at("master_sign_pubkey: True\npki_dir: DIR/pki\n"),
			"master_sign_pubkey: True\npki_dir: /nonexistent\n", "", ""},
		"a signature made beforehand": {at("master_sign_pubkey: True\npki_dir: DIR/pki\n"),
			at("master_sign_pubkey: True\nmaster_use_pubkey_signature: True\npki_dir: DIR/pki2\n"), "", ""},
		"ext_pillar":          {"ext_pillar: [{cmd_yaml: a}]\n", "ext_pillar: [{cmd_yaml: b}]\n", "", "ext_pillar"},
		"the same ext_pillar": {"ext_pillar: [{cmd_yaml: a}]\n", "ext_pillar: [{cmd_yaml: a}]\n", "", ""},
		"a remote on one": {"fileserver_backend: [git]\ngitfs_remotes: [https://h/r]\n", "fileserver_backend: [git]\n", "",
			"gitfs_remotes"},
		"remotes, other passwords": {"fileserver_backend: [git]\ngitfs_remotes: ['https://a:b@h/r', {'https://h/s': [{root: s}]}]\n",
			"fileserver_backend: [git]\ngitfs_remotes: ['https://c@h/r', 'https://h/s']\n", "", ""},
		"remotes that no backend reads": {"gitfs_remotes: [https://h/r]\n", "", "", ""},
		"peer":                          {"peer: {'.*': [test.ping]}\n", "peer: {'.*': [test.*]}\n", "", "peer"},
		"another backend":               {"fileserver_backend: [roots, git]\n", "fileserver_backend: [git, roots]\n", "", "fileserver_backend"},
		"the default backend":           {"fileserver_backend: [roots]\n", "", "", ""},
		"autosign": {at("autosign_file: DIR/autosign\n"), at("autosign_file: DIR/autosign2\n"), "autosign",
			"autosign"},
		"autoreject on one": {at("autoreject_file: DIR/autosign\n"), "autoreject_file: /nonexistent\n", "autosign",
			"autosign"},
		"autosign grains": {at("autosign_grains_dir: DIR/grains\n"), at("autosign_grains_dir: DIR/grains2\n"),
			"autosign", "autosign"},
		"a reaction": {at("reactor: [{a: [DIR/react.sls]}]\n"), at("reactor: [{a: [DIR/react.sls]}]\n"), "file",
			""},
		"a glob of reactions": {at("reactor: [{a: 'DIR/on/*.sls'}]\n"), at("reactor: [{a: 'DIR/on/*.sls'}]\n"), "files",
			""},
		"a glob finds nothing": {at("reactor: [{a: 'DIR/none/*.sls'}]\n"), at("reactor: [{a: 'DIR/none/*.sls'}]\n"), "", ""},
		"a key of a remote":    {at("gitfs_remotes: [{'ssh://h/r': [{root: s}, {privkey: DIR/id}]}]\n"), "", "file", ""},
		"its public key": {at("winrepo_remotes_ng: ['ssh://h/a', {'ssh://h/r': [{pubkey: DIR/id.pub}]}]\n"), "",
			"file", ""},
		"a key of a git pillar": {at(gitPillar), at(gitPillar), "file", ""},
		"a key of all remotes":  {at("gitfs_pubkey: DIR/id.pub\n"), "", "file", ""},
		"a passphrase on one": {"gitfs_remotes: [{'ssh://h/r': [{passphrase: p}]}]\n",
			"gitfs_remotes: [{'ssh://h/r': [{root: s}]}]\n", "", "passphrase"},
		"passphrases on both": {"gitfs_remotes: [{'ssh://h/r': [{passphrase: p}]}]\n",
			"gitfs_remotes: [{'ssh://u:x@h/r': [{passphrase: q}]}]\n", "", ""},
		"one for all remotes":   {"git_pillar_passphrase: p\n", "", "", "passphrase"},
		"a reaction from roots": {"reactor: [{a: ['salt://react.sls']}]\n", "", "", ""},
		"events of edits": {"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n", "",
			"fileserver_events", ""},
		"events of edits twice": {"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n",
			"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n", "fileserver_events", "fileserver_events"},
		"a reaction to events of edits that nobody fires": {"reactor: [{'salt/fileserver/*': ['salt://a']}]\n",
			"reactor: [{'salt/fileserver/*': ['salt://a']}]\n", "", ""},
		"events, no reaction": {"fileserver_events: True\nreactor: [{'salt/minion/*': ['salt://a']}]\n",
			"fileserver_events: True\n", "", ""},
		"cherrypy": {"rest_cherrypy: {port: 8000}\n", "rest_cherrypy: {port: 8000}\n", "rest_cherrypy",
			"rest_cherrypy"},
		"cherrypy on one": {"rest_cherrypy: {port: 8000}\n", "", "rest_cherrypy", ""},
		"without sessions": {"rest_cherrypy: {enable_sessions: false}\n", "rest_cherrypy: {enable_sessions: false}\n", "",
			""},
		"the same modules": {at("extension_modules: DIR/mods\n"), at("module_dirs: [DIR/mods2]\n"), "modules", ""},
		"modules on one":   {at("extension_modules: DIR/mods\n"), "", "modules", "modules"},
		"other modules":    {at("extension_modules: DIR/mods\n"), at("extension_modules: DIR/mods3\n"), "modules", "modules"},
		"git":              {at("file_roots: {base: [DIR/git]}\n"), at("file_roots: {base: [DIR/git]}\n"), "git", "git"},
		"git above": {at("file_roots: {base: [DIR/repo/states]}\n"), at("file_roots: {base: [DIR/repo/states]}\n"), "git",
			"git"},
		"git above, by a link": {at("pillar_roots: {base: [DIR/link]}\n"), at("pillar_roots: {base: [DIR/link]}\n"), "git", "git"},
		"cloned into a root":   {at("file_roots: {base: [DIR/with]}\n"), at("file_roots: {base: [DIR/with]}\n"), "git", "git"},
		"cloned on one":        {at("file_roots: {base: [DIR/with]}\n"), at("file_roots: {base: [DIR/gpg]}\n"), "git", ""},
		"cloned too deep":      {at("file_roots: {base: [DIR/deep]}\n"), at("file_roots: {base: [DIR/gpg]}\n"), "", ""},
		"etckeeper":            {at("file_roots: {base: [DIR/etc/salt]}\n"), at("file_roots: {base: [DIR/etc/salt]}\n"), "", ""},
		"git on one":           {at("pillar_roots: {base: [DIR/git]}\n"), at("pillar_roots: {base: [DIR/gpg]}\n"), "git", ""},
		"nothing":              {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := OwnOf(loadText(t, 3008, c.one), true), OwnOf(loadText(t, 3008, c.other), true)
			expectFinding(t, "alone", CheckOwn(one), c.alone)
			masters := map[string]Own{"m1": one, "m2": other, "m0, which says nothing": nil}
			expectFinding(t, "compared", CompareOwn(masters), c.differ)
		})
	}
	if own := OwnOf(loadText(t, 3008, at("file_roots: {base: [DIR/git]}\n")), false); len(CheckOwn(own)) > 0 {
		t.Errorf("a git work tree that is not replicated: %+v", CheckOwn(own))
	}
	if found := CompareOwn(map[string]Own{"m1": {"later version": "x", "file:": ""},
		"m2": {"later version": "y"}}); len(found) > 0 {
		t.Errorf("items of a later version: %+v", found)
	}
}

const gitPillar = "ext_pillar: [{git: ['main ssh://h/a', {'main ssh://h/r': [{privkey: DIR/id}]}]}]\n"

// What a glob finds is compared by names and contents.
func TestGlobDigest(t *testing.T) {
	dir := writeTree(t, map[string]string{"a/x.sls": "x", "b/x.sls": "x", "b/.hidden": "h", "c/x.sls": "y", "d/y.sls": "x",
		"e/sub/z": "z"})
	digest := func(sub string) string { // from within, so that names are the same
		t.Chdir(filepath.Join(dir, sub))
		return newReader().globDigest("*")
	}
	a := digest("a")
	for sub, same := range map[string]bool{"b": true, "c": false, "d": false, "e": false} {
		if got := digest(sub); (got == a) != same {
			t.Errorf("%s: %q, of the first %q", sub, got, a)
		}
	}
}

// Neither what masters tell each other nor what is said to an operator has a secret in it.
func TestOwnHasNoSecrets(t *testing.T) {
	text := "gitfs_remotes: [{'https://user:SECRET@h/r': [{password: SECRET}, {passphrase: SECRET}]}]\ngitfs_passphrase: SECRET\n" +
		"ext_pillar: [{git: [{'main https://user:SECRET@h/r': [{passphrase: SECRET}]}]}]\n"
	own, without := OwnOf(loadText(t, 3008, text), true), OwnOf(loadText(t, 3008, ""), true)
	out := fmt.Sprintf("%v %+v %+v", own, CheckOwn(own), CompareOwn(map[string]Own{"a": own, "b": without}))
	if own["passphrase"] == "" || strings.Contains(out, "SECRET") || strings.Contains(out, "user") {
		t.Error(out)
	}
	for _, r := range gitRemotes(loadText(t, 3008, text)) {
		if strings.Contains(r.id, "SECRET") {
			t.Errorf("a remote is known as %s", r.id)
		}
	}
}

// ownOfMany is of a master that names 90 reactions, and one glob that finds too many.
func ownOfMany(t *testing.T) Own {
	t.Helper()
	files, paths := map[string]string{}, []string{}
	for i := range 90 {
		files[fmt.Sprintf("r/%02d.sls", i)] = "x"
	}
	for i := range maxDirFiles + 1 {
		files[fmt.Sprintf("many/%d", i)] = "x"
	}
	dir := writeTree(t, files)
	for i := range 90 {
		paths = append(paths, fmt.Sprintf("%s/r/%02d.sls", dir, i))
	}
	return OwnOf(loadText(t, 3008, "reactor: [{a: ["+strings.Join(paths, ", ")+", '"+dir+"/many/*']}]\nvault: {url: u}\n"),
		true)
}

// Many items are told in part and counted, neither left out nor sent whole.
func TestManyItemsAreBounded(t *testing.T) {
	own := ownOfMany(t)
	if own.moreCount() != 1 { // the glob
		t.Errorf("%d are left out", own.moreCount())
	}
	some := own.Bounded(64, 1<<20)
	if told := len(some) - 1; told != 63 || some.moreCount() != 1+len(own)-1-told || some["vault"] != "on" {
		t.Errorf("%d items, %d more, of %d", len(some), some.moreCount(), len(own))
	}
	if !maps.Equal(own.Bounded(64, 1<<20), some) {
		t.Error("not the same items each time")
	}
	few := own.Bounded(64, 1<<10)
	if text, _ := json.Marshal(few); len(text) > 1<<10 || few["vault"] != "on" || few.moreCount() <= some.moreCount() {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// Of many findings of one kind the first are shown, and a count.
func TestManyFindings(t *testing.T) {
	own := ownOfMany(t).Bounded(64, 1<<20)
	other := maps.Clone(own)
	delete(other, ownMore)
	for item := range other {
		if kind, _ := ownKind(item); kind == "file" {
			other[item] = "another"
		}
	}
	for when, found := range map[string][]Finding{"alone": CheckOwn(own),
		"compared": CompareOwn(map[string]Own{"m1": own, "m2": other})} {
		counts, all := map[string]int{}, ""
		for _, f := range found {
			counts[f.Option]++
			all += f.Message + "\n"
		}
		if counts["file"] != shownOfEach+1 || counts[ownMore] != 1 || !strings.Contains(all, " more (file)") ||
			strings.Contains(all, "%!") {
			t.Errorf("%s: %v\n%s", when, counts, all)
		}
	}
	for _, lie := range []string{"-5", "x", ""} {
		if found := CompareOwn(map[string]Own{"m1": {ownMore: lie}, "m2": {}}); len(found) > 0 {
			t.Errorf("%q: %+v", lie, found)
		}
	}
}

// What is read at once is bounded in files and bytes.
func TestReaderStops(t *testing.T) {
	path := filepath.Join(writeTree(t, map[string]string{"a": "1234"}), "a")
	for name, r := range map[string]*boundedReader{"files": {files: 2, bytes: 100}, "bytes": {files: 9, bytes: 8}} {
		for i, much := range []bool{false, false, true, true} {
			if got := r.fileDigest(path); (got == tooMuch) != much {
				t.Errorf("%s, read %d: %q", name, i, got)
			}
		}
		if got := r.globDigest(filepath.Dir(path) + "/*"); got != tooMuch {
			t.Errorf("%s, a glob: %q", name, got)
		}
	}
}

// A section of the guide that a finding points at is there.
func TestHintsNameSections(t *testing.T) {
	n := 0
	for kind, rule := range ownRules {
		m := regexp.MustCompile(`see (docs/\S+\.md), (.*)\.$`).FindStringSubmatch(rule.fix)
		if m == nil {
			continue
		}
		n++
		guide, err := os.ReadFile(filepath.Join("../..", m[1]))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		} else if !regexp.MustCompile(`(?m)^##+ ` + regexp.QuoteMeta(m[2]) + `$`).Match(guide) {
			t.Errorf("%s: %s has no section %q", kind, m[1], m[2])
		}
	}
	if n == 0 {
		t.Error("no finding points at the guide")
	}
}

func expectFinding(t *testing.T, when string, found []Finding, option string) {
	t.Helper()
	switch {
	case option == "" && len(found) > 0, option != "" && (len(found) != 1 || found[0].Option != option):
		t.Errorf("%s: findings %+v, want %q", when, found, option)
	}
	for _, f := range found {
		if f.Fix == "" || strings.Contains(f.Message+f.Fix, "%!") || strings.Contains(f.Message+f.Fix, "%s") {
			t.Errorf("%s: %+v", when, f)
		}
	}
}
