package masterlink

import (
	"testing"

	"saltclusterd/sidecar/localmaster/configtest"
)

func TestOptions_PushedBy(t *testing.T) {
	const minionfs = "fileserver_backend: [roots, minionfs]\n"
	for name, c := range map[string]struct{ conf, path, want string }{
		"not served":                 {"", "m1/etc/hosts", ""},
		"served":                     {minionfs, "m1/etc/hosts", "m1"},
		"by its other name":          {"fileserver_backend: [minion, roots]\n", "m1/etc/hosts", "m1"},
		"an id with dots and spaces": {minionfs, "Web 1.example/x", "Web 1.example"},
		"a file of nobody's":         {minionfs, "top.sls", ""},
		"a directory":                {minionfs, "m1/", ""},
		"below a mount point":        {minionfs + "minionfs_mountpoint: salt://pushed\n", "pushed/m1/etc/hosts", "m1"},
		"the mount point alone":      {minionfs + "minionfs_mountpoint: pushed\n", "pushed", ""},
		"with a question mark in it": {minionfs, "|m1/etc/a?b", "m1"},
		"shorter than it":            {minionfs + "minionfs_mountpoint: pushed\n", "push", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readOptions(configtest.Load(t, 3006, c.conf)).PushedBy(c.path); got != c.want {
				t.Errorf("%q is by %q, want %q", c.path, got, c.want)
			}
		})
	}
}
