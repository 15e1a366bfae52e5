package config

import (
	"fmt"
	"path"
)

func rootsOptions() []Option {
	const section = "File and pillar roots"
	return []Option{
		{
			Name: "cluster_roots_sync", Section: section, field: func(c *Config) any { return &c.Roots.Sync },
			Doc: "auto: edits below the salt-master's file_roots and pillar_roots reach every master a moment later. manual: " +
				"they do so only when saltclusterctl sync_roots is run; edits from other nodes are still installed here. off: this node neither " +
				"sends nor receives. The directories may have other paths on each node: environment and position in the list identify them.",
			check: oneOf(RootsAuto, RootsManual, RootsOff),
		},
		{
			Name: "cluster_roots_max_delete", Section: section, field: func(c *Config) any { return &c.Roots.MaxDelete },
			Doc:   "A change that deletes or empties more than this percentage of the files of a directory, and more than ten, at once or within ten minutes, waits for saltclusterctl roots confirm. 100: nothing waits.",
			check: intBetween(1, 100),
		},
		{
			Name: "cluster_roots_ignore", Section: section, field: func(c *Config) any { return &c.Roots.Ignore },
			Doc: "Names (shell patterns) that are neither sent nor removed: version control, editors' files. A pattern with a slash is for " +
				"the path below the directory. Must be the same on every node.",
			check: everyPattern,
		},
		{
			Name: "cluster_roots_history", Section: section, field: func(c *Config) any { return &c.Roots.History },
			Doc:   "Disk space on each node for files that changes replaced, kept for saltclusterctl roots rollback.",
			check: sizeBetween(MiB, 1024*GiB),
		},
	}
}

// The values of cluster_roots_sync.
const (
	RootsAuto   = "auto"
	RootsManual = "manual"
	RootsOff    = "off"
)

const maxPatterns = 256

func everyPattern(v any) (string, string) {
	list := v.([]string)
	if len(list) > maxPatterns {
		return fmt.Sprintf("%d patterns, at most %d", len(list), maxPatterns), ""
	}
	for _, p := range list {
		if _, err := path.Match(p, "x"); err != nil || p == "" {
			return fmt.Sprintf("%q is not a shell pattern", p), "for example *.swp"
		}
		if p == "*" {
			return "* would ignore everything", "to send nothing: cluster_roots_sync: 'off'"
		}
	}
	return "", ""
}
