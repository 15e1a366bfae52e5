package doctor

import (
	"errors"
	"io/fs"

	"saltclusterd/sidecar/localmaster"
)

// MasterConfig looks for mistakes in the salt-master's files. With a mistake in the main file the salt-master does not
// start, and the message is easily overlooked. The salt-master leaves out any other file that has one.
func MasterConfig(path string, major int) []Finding {
	cfg, err := localmaster.LoadConfig(path, localmaster.Version{Major: major})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return []Finding{{Check: "master", Level: Skip, What: "its configuration cannot be read by this user: " + err.Error(),
			Next: "sudo"}}
	case err != nil:
		return []Finding{{
			Check: "master", Level: Fail, What: err.Error(),
			Why:  "neither the salt-master nor saltclusterd starts with it; running ones keep the previous configuration",
			Next: "correct it; then: systemctl start salt-master saltclusterd",
		}}
	}
	var out []Finding
	for _, w := range cfg.Warnings {
		out = append(out, Finding{
			Check: "master", Level: Warn, What: w, Why: "the salt-master ignores this file, and runs without its options",
			Next: "correct it; then: systemctl restart salt-master",
		})
	}
	if len(out) == 0 {
		out = append(out, ok("master", path, "its files have no errors"))
	}
	return out
}
