package fileserve

import (
	"fmt"
	"regexp"

	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/pyregexp"
)

// ignorer is salt.fileserver.is_file_ignored.
type ignorer []*regexp.Regexp

// newIgnorer compiles file_ignore_regex and file_ignore_glob. An expression whose meaning might differ between Python
// and here is an error.
func newIgnorer(expressions, globs []string) (ignorer, error) {
	var out ignorer
	for _, e := range expressions {
		re, err := pyregexp.Search(e)
		if err != nil {
			return nil, fmt.Errorf("file_ignore_regex %q: %w", e, err)
		}
		out = append(out, re)
	}
	for _, g := range globs {
		re, err := fnmatch.Compile(g)
		if err != nil {
			return nil, fmt.Errorf("file_ignore_glob: %w", err)
		}
		out = append(out, re)
	}
	return out, nil
}

func (g ignorer) isIgnored(name string) bool {
	for _, re := range g {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}
