package mines

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/saltvalue"
)

// The kinds of targets that go by ids.
const (
	globKind = "glob"
	listKind = "list"
)

// crowd is whom a target names, with a key or without.
type crowd struct {
	names []string
	glob  *regexp.Regexp // nil: the names are meant
}

func (c crowd) hasMinion(id string) bool {
	if c.glob != nil {
		return c.glob.MatchString(id)
	}
	return slices.Contains(c.names, id)
}

// matchMinions is CkMinions.check_minions: the minions of a target, in the order of a master's.
func (r *reader) matchMinions(ctx context.Context, kind string, raw []byte) ([]string, error) {
	who, err := r.parseTarget(kind, raw)
	if err != nil {
		return nil, err
	}
	if who.glob == nil {
		return dropRepeated(slices.DeleteFunc(who.names, func(name string) bool { return !r.isAccepted(name) })), nil
	}
	var ids []string
	for _, id := range r.keys.IDs() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if who.hasMinion(id) && !isHidden(id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	return ids, nil
}

// parseTarget reads a target.
func (r *reader) parseTarget(kind string, raw []byte) (crowd, error) {
	expr, isText := saltvalue.Text(raw)
	isText = isText || isNil(raw) // "" then
	switch {
	case kind == globKind && isText:
		return r.parseGlob(expr)
	case kind == listKind && isText:
		if strings.Count(expr, ",") >= maxTargets {
			return crowd{}, saltvalue.Needs("a target of more than %d names", maxTargets)
		}
		return r.parseList(strings.FieldsFunc(expr, func(c rune) bool { return c == ',' }))
	case kind == listKind:
		names, err := readTexts(raw, maxTargets)
		if err != nil {
			return crowd{}, err
		}
		return r.parseList(names)
	}
	return crowd{}, needsKind(kind)
}

func needsKind(kind string) error { return saltvalue.Needs("a target of type %.20q", kind) }

// parseList is CkMinions._check_list_minions.
func (r *reader) parseList(names []string) (crowd, error) {
	if r.set.major >= splitSince && slices.ContainsFunc(names, func(name string) bool { return !r.isAccepted(name) }) {
		return crowd{}, saltvalue.Needs("a name that may be that of a resource")
	}
	return crowd{names: names}, nil
}

// parseGlob is CkMinions._check_glob_minions.
func (r *reader) parseGlob(expr string) (crowd, error) {
	if len(expr) > maxGlob {
		return crowd{}, saltvalue.Needs("a glob of %d bytes", len(expr))
	}
	if r.set.major >= splitSince && strings.Contains(expr, ",") {
		return crowd{}, saltvalue.Needs("a target of several globs")
	}
	if expr == "" {
		return crowd{}, nil
	}
	if !strings.ContainsAny(expr, "*?[") {
		return r.parseList([]string{expr})
	}
	if r.set.major >= splitSince && r.files.hasResources() {
		return crowd{}, saltvalue.Needs("a glob that may also mean resources of minions")
	}
	re, err := fnmatch.Compile(expr)
	if err != nil {
		return crowd{}, saltvalue.Needs("a glob that only Python can read")
	}
	return crowd{glob: re}, nil
}

// isAccepted says whether a minion has an accepted key.
func (r *reader) isAccepted(id string) bool {
	_, ok := r.keys.Accepted(id)
	return ok && !isHidden(id)
}

// isHidden says whether a master takes the file of a key for none.
func isHidden(id string) bool { return strings.HasPrefix(id, ".") }
