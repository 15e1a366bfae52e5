package localmaster

import (
	"maps"
	"regexp"
)

// gitRemote is what is set for one repository that the master reads, or for all of a kind.
type gitRemote struct {
	role   string // gitfs, git_pillar or winrepo
	id     string // its URL, with the branch before it for git_pillar, without user and password; empty: all of the role
	params map[string]any
}

// gitRemotes lists the remotes of the three roles of salt.utils.gitfs with what is set for each, and what is set for
// all of a role.
func gitRemotes(cfg *Config) (out []gitRemote) {
	for _, role := range []string{"gitfs", "git_pillar", "winrepo"} {
		all := map[string]any{}
		for _, name := range []string{"privkey", "pubkey", "passphrase"} {
			all[name], _ = cfg.Raw(role + "_" + name)
		}
		out = append(out, gitRemote{role: role, params: all})
	}
	for _, option := range [][2]string{{"gitfs", "gitfs_remotes"}, {"winrepo", "winrepo_remotes"},
		{"winrepo", "winrepo_remotes_ng"}} {
		v, _ := cfg.Raw(option[1])
		out = append(out, remotesOf(option[0], v)...)
	}
	v, _ := cfg.Raw("ext_pillar")
	pillars, _ := v.([]any)
	for _, pillar := range pillars {
		if m, ok := pillar.(map[string]any); ok {
			out = append(out, remotesOf("git_pillar", m["git"])...)
		}
	}
	return out
}

// credentials are a user and a password in a URL.
var credentials = regexp.MustCompile(`//[^/@]*@`)

// remotesOf reads a list of remotes; one for which something is set is a map from its URL to a list of that.
func remotesOf(role string, v any) (out []gitRemote) {
	list, _ := v.([]any)
	for _, remote := range list {
		m, _ := remote.(map[string]any)
		for id, params := range m {
			out = append(out, gitRemote{role: role, id: credentials.ReplaceAllString(id, "//"), params: repackDictlist(params)})
		}
	}
	return out
}

// repackDictlist makes one map of a list of maps, as salt.utils.data.repack_dictlist does.
func repackDictlist(v any) map[string]any {
	out := map[string]any{}
	list, _ := v.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		maps.Copy(out, m)
	}
	return out
}
