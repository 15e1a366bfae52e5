package localmaster

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// applier computes the effective options from what files say: salt.config.apply_master_config, step by step in its
// order, for order matters (sock_dir is compared before root_dir is put in front, and so on).
type applier struct {
	opts, overrides map[string]any
	ver             Version
	r               *confReader
	globbed         map[string]bool // options with directories that were found by wildcards
}

func (a *applier) applyAll() error {
	a.opts["__role"] = "master"
	a.opts["__fs_update"] = true
	a.logDir()
	if port, ok := a.overrides["cluster_port"]; ok && a.ver.Major >= 3008 {
		if _, ok := a.overrides["cluster_pool_port"]; !ok {
			a.overrides["cluster_pool_port"] = port
		}
	}
	maps.Copy(a.opts, a.overrides)
	if ext, ok := a.opts["external_auth"].(map[string]any); ok && ext["rest"] != nil {
		a.opts["keep_acl_in_token"] = true
	}
	a.applyEnvironment()
	a.applyBackends()
	if err := a.applyDirs(); err != nil {
		return err
	}
	a.ipcBuffer()
	if err := a.applyID(); err != nil {
		return err
	}
	if err := a.prependRootDir(); err != nil {
		return err
	}
	if a.ver.Major >= 3007 {
		a.applyCluster()
	}
	a.opts["open_mode"] = a.opts["open_mode"] == true
	a.opts["auto_accept"] = a.opts["auto_accept"] == true
	a.globbed = map[string]bool{}
	for _, name := range []string{FileRoots, PillarRoots} {
		a.opts[name], a.globbed[name] = validateRoots(a.opts[name])
	}
	a.fileIgnore()
	a.applyWorkers()
	if _, ok := a.opts["pillar_source_merging_strategy"]; !ok {
		a.opts["pillar_source_merging_strategy"] = "smart"
	}
	if s, ok := a.opts["hash_type"].(string); ok {
		a.opts["hash_type"] = strings.ToLower(s)
	}
	a.applyTLS()
	a.applyDiscovery()
	a.applyNodegroups()
	a.sshMinionOpts()
	return a.checkAlgorithms()
}

// logDir is _adjust_log_file_override.
func (a *applier) logDir() {
	dir, _ := a.overrides["log_dir"].(string)
	if dir == "" {
		return
	}
	file, _ := a.overrides["log_file"].(string)
	switch {
	case file == "":
		def, _ := a.opts["log_file"].(string)
		a.overrides["log_file"] = osJoin(dir, filepath.Base(def))
	case !filepath.IsAbs(file):
		a.overrides["log_file"] = osJoin(dir, file)
	}
}

func (a *applier) applyEnvironment() {
	env, ok := a.opts["environment"]
	if !ok {
		return
	}
	if a.opts["saltenv"] != nil {
		a.opts["environment"] = a.opts["saltenv"]
		return
	}
	a.opts["saltenv"] = env
}

func (a *applier) applyBackends() {
	list, _ := a.opts["fileserver_backend"].([]any)
	for i, v := range list {
		if s, ok := v.(string); ok && slices.Contains([]string{"git", "hg", "svn", "minion"}, s) {
			list[i] = s + "fs"
		}
	}
}

func (a *applier) applyDirs() error {
	sock, okSock := a.opts["sock_dir"].(string)
	cache, okCache := a.opts["cachedir"].(string)
	if !okSock || !okCache {
		return fmt.Errorf("options sock_dir and cachedir must be paths")
	}
	// A socket's path has room for some 107 bytes; Salt's rule of thumb for that, counted in characters.
	if len([]rune(sock)) > len([]rune(cache))+10 {
		a.opts["sock_dir"] = osJoin(cache, ".salt-unix")
	}
	a.opts["token_dir"] = osJoin(cache, "tokens")
	a.opts["syndic_dir"] = osJoin(cache, "syndics")
	if !pyTrue(a.opts["extension_modules"]) {
		a.opts["extension_modules"] = osJoin(cache, "extmods")
	}
	if ext, ok := a.opts["extension_modules"].(string); ok && !pyTrue(a.opts["utils_dirs"]) {
		a.opts["utils_dirs"] = []any{osJoin(ext, "utils")}
	}
	return nil
}

// ipcBuffer: "dynamic" would be computed from the machine's memory; it stays as it is here.
func (a *applier) ipcBuffer() {
	if _, ok := a.overrides["ipc_write_buffer"]; !ok {
		a.opts["ipc_write_buffer"] = int64(0)
	}
}

func (a *applier) applyCluster() {
	if a.opts["cluster_id"] == nil {
		a.opts["cluster_id"] = nil
		if pyTrue(a.opts["cluster_peers"]) {
			a.opts["cluster_peers"] = []any{}
		}
		if pyTrue(a.opts["cluster_pki_dir"]) {
			a.opts["cluster_pki_dir"] = nil
		}
		return
	}
	if !pyTrue(a.opts["cluster_peers"]) && (a.ver.Major < 3008 || !pyTrue(a.opts["cluster_secret"])) {
		a.opts["cluster_peers"] = []any{}
	}
	if !pyTrue(a.opts["cluster_pki_dir"]) {
		a.opts["cluster_pki_dir"] = a.opts["pki_dir"]
	}
}

// validateRoots is _validate_file_roots, used by Salt for pillar_roots too.
func validateRoots(v any) (_ any, globbed bool) {
	roots, ok := v.(map[string]any)
	if !ok {
		return map[string]any{"base": []any{"/srv/salt"}}, false
	}
	for env, dirs := range roots {
		list, _ := dirs.([]any)
		expanded := make([]any, 0, len(list))
		for _, dir := range list {
			s, ok := dir.(string)
			if !ok || !hasMagic(s) {
				expanded = append(expanded, dir)
				continue
			}
			globbed = true
			for _, m := range pyGlob(s) {
				expanded = append(expanded, m)
			}
		}
		roots[env] = expanded
	}
	return roots, globbed
}

func (a *applier) fileIgnore() {
	if v := a.opts["file_ignore_regex"]; pyTrue(v) {
		if s, ok := v.(string); ok {
			v = []any{s}
		}
		a.opts["file_ignore_regex"] = v
	}
	if s, ok := a.opts["file_ignore_glob"].(string); ok && s != "" {
		a.opts["file_ignore_glob"] = []any{s}
	}
}

func (a *applier) applyWorkers() {
	if n, ok := a.opts["worker_threads"].(int64); ok && n < 3 && pyTrue(a.opts["peer"]) {
		a.opts["worker_threads"] = int64(3)
	}
	enabled, set := a.opts["worker_pools_enabled"]
	if a.ver.Major < 3008 || set && !pyTrue(enabled) || pyTrue(a.opts["worker_pools"]) {
		return
	}
	if n, ok := a.opts["worker_threads"]; ok {
		a.opts["worker_pools"] = map[string]any{"default": map[string]any{"worker_count": n, "commands": []any{"*"}}}
	}
}

// applyTLS is _update_ssl_config; the names of constants stay names.
func (a *applier) applyTLS() {
	switch a.opts["ssl"] {
	case nil, false:
		a.opts["ssl"] = nil
	case true:
		a.opts["ssl"] = map[string]any{}
	}
}

func (a *applier) applyDiscovery() {
	v := a.opts["discovery"]
	if v == nil || v == false {
		return
	}
	d := map[string]any{"port": int64(4520), "mapping": map[string]any{}}
	if m, ok := v.(map[string]any); ok {
		dictUpdate(d, m)
	}
	a.opts["discovery"] = d
}

// applyNodegroups given as a list of maps become one map (salt.utils.data.repack_dictlist).
func (a *applier) applyNodegroups() {
	list, ok := a.opts["nodegroups"].([]any)
	if !ok {
		if a.opts["nodegroups"] == nil {
			a.opts["nodegroups"] = map[string]any{}
		}
		return
	}
	all := map[string]any{}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || len(m) != 1 {
			return
		}
		maps.Copy(all, m)
	}
	if len(list) > 0 {
		a.opts["nodegroups"] = all
	}
}

var masterOnlySSHOpt = regexp.MustCompile(`(?i)^[a-z0-9]+fs_`)

func (a *applier) sshMinionOpts() {
	v, ok := a.opts["ssh_minion_opts"]
	if !ok {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		delete(a.opts, "ssh_minion_opts")
		return
	}
	for name := range m {
		if masterOnlySSHOpt.MatchString(name) || name == "fileserver_backend" ||
			strings.Contains(name, "pillar") && name != "ssh_merge_pillar" {
			delete(m, name)
		}
	}
}

func (a *applier) checkAlgorithms() error {
	valid := []any{"PKCS1v15-SHA1", "PKCS1v15-SHA224"}
	if alg := a.opts["publish_signing_algorithm"]; !slices.Contains(valid, alg) {
		return fmt.Errorf("option publish_signing_algorithm: %q is not one of PKCS1v15-SHA1, PKCS1v15-SHA224", pyStr(alg))
	}
	return nil
}
