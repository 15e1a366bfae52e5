package localmaster

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// rootedOptions are the paths that root_dir is put in front of; the loggable ones only when they are no URI.
var (
	rootedOptions = []string{
		"pki_dir", "cachedir", "pidfile", "sock_dir", "extension_modules", "autosign_file", "autoreject_file",
		"token_dir", "syndic_dir", "sqlite_queue_dir", "autosign_grains_dir",
	}
	rootedLogs = []string{"log_file", "key_logfile", "ssh_log_file"}
)

func (a *applier) prependRootDir() error {
	dir, ok := a.opts["root_dir"].(string)
	if !ok {
		return fmt.Errorf("option root_dir must be a path")
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("option root_dir: %w", err)
	}
	names := rootedOptions
	for _, name := range rootedLogs {
		if s, ok := a.opts[name].(string); ok && uriScheme(s) == "" {
			names = append(names[:len(names):len(names)], name)
		}
	}
	for _, name := range names {
		v, ok := a.opts[name]
		if !ok {
			continue
		}
		path, ok := v.(string)
		if !ok {
			return fmt.Errorf("option %s must be a path", name)
		}
		a.opts[name] = prependRoot(root, path)
	}
	return nil
}

// prependRoot is prepend_root_dir for one path, with syspaths.ROOT_DIR "/": every absolute path counts as below the
// default root, so that only one already below root_dir keeps its place.
func prependRoot(root, path string) string {
	if rest, ok := strings.CutPrefix(path, root); ok && strings.HasPrefix(rest, "/") {
		path = rest
	}
	return saltJoin(root, path)
}

func uriScheme(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Scheme
}
