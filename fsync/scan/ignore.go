package scan

import (
	"fmt"
	"path"
	"strings"

	"saltclusterd/fsync/tree"
)

// DefaultIgnore is what version control, editors and file systems leave in directories.
func DefaultIgnore() []string {
	return []string{
		".git", ".svn", ".hg", ".bzr", "*~", ".*.sw[a-p]", ".*.swx", "4913", ".#*", "#*#", ".nfs????*", ".DS_Store",
		".goutputstream-*",
	}
}

// Ignore matches what is not part of a tree.
type Ignore struct {
	names, paths []pattern
	first, last  *[256]bool // with what bytes names begin or end that may match; nil: any
}

// pattern is one of path.Match, with what is cheaper to look at: how a text that it matches begins and ends.
type pattern struct {
	text, begin, end string
	plain            bool // it has no wildcards
}

func newPattern(text string) pattern {
	const special = `*?[]\`
	first, last := strings.IndexAny(text, special), strings.LastIndexAny(text, special)
	if first < 0 {
		return pattern{text: text, plain: true}
	}
	return pattern{text: text, begin: text[:first], end: text[last+1:]}
}

func (p *pattern) matchText(text string) bool {
	if p.plain {
		return text == p.text
	}
	if !strings.HasPrefix(text, p.begin) || !strings.HasSuffix(text, p.end) {
		return false
	}
	ok, _ := path.Match(p.text, text)
	return ok
}

// NewIgnore takes patterns as path.Match has them. One with a slash is for paths relative to the slot, others for
// names.
func NewIgnore(patterns []string) (Ignore, error) {
	var ig Ignore
	for _, p := range patterns {
		if _, err := path.Match(p, "x"); err != nil {
			return ig, fmt.Errorf("ignore pattern %q: %w", p, err)
		}
		if strings.Contains(p, "/") {
			ig.paths = append(ig.paths, newPattern(strings.Trim(p, "/")))
		} else {
			ig.names = append(ig.names, newPattern(p))
		}
	}
	ig.first, ig.last = new([256]bool), new([256]bool)
	for _, p := range ig.names {
		switch {
		case p.plain && p.text != "":
			ig.first[p.text[0]] = true
		case p.begin != "":
			ig.first[p.begin[0]] = true
		case p.end != "":
			ig.last[p.end[len(p.end)-1]] = true
		default:
			ig.first, ig.last = nil, nil
			return ig, nil
		}
	}
	return ig, nil
}

// mayMatch says whether a look at the patterns is worthwhile for a name.
func (ig Ignore) mayMatch(name string) bool {
	return ig.first == nil || name == "" || ig.first[name[0]] || ig.last[name[len(name)-1]]
}

// Match says whether a path with the last name is ignored.
func (ig Ignore) Match(full, name string) bool {
	if strings.HasPrefix(name, tree.OwnPrefix) {
		return true
	}
	if ig.mayMatch(name) {
		for i := range ig.names {
			if ig.names[i].matchText(name) {
				return true
			}
		}
	}
	for i := range ig.paths {
		if ig.paths[i].matchText(full) {
			return true
		}
	}
	return false
}
