package datacache

import "strings"

const (
	maxID  = 255 - len(suffix)
	maxEnv = 100
)

// validID says whether an id can name a file: as salt.utils.verify.valid_id has it, and no hidden file.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && id[0] != '.' && plainName(id)
}

// validEnv says whether a pillarenv can be part of a file's name. 3008 makes directories of one with a slash; such
// pillars are not carried.
func validEnv(env string) bool { return env != "" && len(env) <= maxEnv && plainName(env) }

func plainName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' })
}
