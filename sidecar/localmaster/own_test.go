package localmaster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTree writes files below a new directory, and returns that.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckActors(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"timeout/clean.sls": "statreg:\n  status.reg\nkeydel:\n  key.timeout:\n    - delete: 90\n",
		"status/look.sls":   "statreg:\n  status.reg\n",
		"react.sls":         "gone:\n  wheel.key.delete:\n    - args:\n      - match: {{ data['id'] }}\n",
	})
	thorium := func(roots string) string {
		return "engines: [{thorium: {}}]\nthorium_roots: {base: [" + filepath.Join(dir, roots) + "]}\n"
	}
	for name, c := range map[string]struct {
		text        string
		everyMaster bool
		option      string // of the finding; empty: none
		fatal       bool
	}{
		"nothing set":                      {"", false, "", false},
		"thorium that deletes":             {thorium("timeout"), false, "engines", true},
		"thorium that hears every minion":  {thorium("timeout"), true, "", false},
		"thorium that only looks":          {thorium("status"), false, "", false},
		"thorium without formulas":         {thorium("nothing"), false, "", false},
		"formulas without thorium":         {"thorium_roots: {base: [" + dir + "/timeout]}\n", false, "", false},
		"a reaction to presence":           {"reactor: [{'salt/presence/*': [" + dir + "/react.sls]}]\n", false, "reactor", false},
		"the same to what somebody fires":  {"reactor: [{'salt/cloud/*/destroyed': [" + dir + "/react.sls]}]\n", false, "", false},
		"a reaction that takes no keys":    {"reactor: [{'salt/presence/*': [" + dir + "/status/look.sls]}]\n", false, "", false},
		"a reaction that cannot be read":   {"reactor: [{'salt/presence/*': [/nonexistent.sls]}]\n", false, "", false},
		"a reactor that is no list at all": {"reactor: {a: b}\n", false, "", false},
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

// Each item of ownRules: what it takes to be found on a host alone, and on two masters of which one has it, or both, or each its own.
func TestMastersOwn(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"gpg/private-keys-v1.d/0123.key": "secret", "gpg/pubring.kbx": "", "gpg2/private-keys-v1.d/4567.key": "secret",
		"autosign": "web*\n", "autosign2": "db*\n", "grains/uuid": "1\n", "grains2/uuid": "2\n",
		"react.sls": "a:\n  local.test.ping: []\n", "git/.git/HEAD": "ref", "git/top.sls": "",
	})
	at := func(text string) string { return strings.ReplaceAll(text, "DIR", dir) }
	for name, c := range map[string]struct {
		one, other    string // options of two masters
		alone, differ string // what is found, "" nothing
	}{
		"gpg on both":           {at("gpg_keydir: DIR/gpg\n"), at("gpg_keydir: DIR/gpg\n"), "gpg", ""},
		"gpg on one":            {at("gpg_keydir: DIR/gpg\n"), "", "gpg", "gpg"},
		"other gpg keys":        {at("gpg_keydir: DIR/gpg\n"), at("gpg_keydir: DIR/gpg2\n"), "gpg", "gpg"},
		"no gpg keys":           {at("gpg_keydir: DIR/none\n"), "", "", ""},
		"vault on one":          {"vault: {server: {url: u}}\n", "", "vault", "vault"},
		"vault, other tokens":   {"vault: {auth: {token: a}}\n", "vault: {auth: {token: b}}\n", "vault", ""},
		"ext_pillar":            {"ext_pillar: [{cmd_yaml: a}]\n", "ext_pillar: [{cmd_yaml: b}]\n", "", "ext_pillar"},
		"the same ext_pillar":   {"ext_pillar: [{cmd_yaml: a}]\n", "ext_pillar: [{cmd_yaml: a}]\n", "", ""},
		"autosign":              {at("autosign_file: DIR/autosign\n"), at("autosign_file: DIR/autosign2\n"), "autosign", "autosign"},
		"autoreject on one":     {at("autoreject_file: DIR/autosign\n"), "autoreject_file: /nonexistent\n", "autosign", "autosign"},
		"autosign grains":       {at("autosign_grains_dir: DIR/grains\n"), at("autosign_grains_dir: DIR/grains2\n"), "autosign", "autosign"},
		"a reaction":            {at("reactor: [{a: [DIR/react.sls]}]\n"), at("reactor: [{a: [DIR/react.sls]}]\n"), "file", ""},
		"a reaction from roots": {"reactor: [{a: ['salt://react.sls']}]\n", "", "", ""},
		"events of edits":       {"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n", "", "fileserver_events", ""},
		"events of edits twice": {"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n",
			"fileserver_events: True\nreactor: [{'salt/fileserver/*': ['salt://a']}]\n", "fileserver_events", "fileserver_events"},
		"events, no reaction": {"fileserver_events: True\nreactor: [{'salt/minion/*': ['salt://a']}]\n", "fileserver_events: True\n", "", ""},
		"cherrypy":            {"rest_cherrypy: {port: 8000}\n", "rest_cherrypy: {port: 8000}\n", "rest_cherrypy", "rest_cherrypy"},
		"cherrypy on one":     {"rest_cherrypy: {port: 8000}\n", "", "rest_cherrypy", ""},
		"without sessions":    {"rest_cherrypy: {enable_sessions: false}\n", "rest_cherrypy: {enable_sessions: false}\n", "", ""},
		"git":                 {at("file_roots: {base: [DIR/git]}\n"), at("file_roots: {base: [DIR/git]}\n"), "git", "git"},
		"git on one":          {at("pillar_roots: {base: [DIR/git]}\n"), at("pillar_roots: {base: [DIR/gpg]}\n"), "git", ""},
		"nothing":             {"", "", "", ""},
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
	if found := CompareOwn(map[string]Own{"m1": {"later version": "x", "file:": ""}, "m2": {"later version": "y"}}); len(found) > 0 {
		t.Errorf("items of a later version: %+v", found)
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
