package mines

import (
	"cmp"
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

// crowd are the minions of a target, in the order of a master's.
type crowd struct{ ids []string }

func (c *crowd) has(id string) bool { return slices.Contains(c.ids, id) }

// match is CkMinions.check_minions.
func (r *reader) match(kind string, raw []byte) (*crowd, error) {
	expr, isText := saltvalue.Text(raw)
	isText = isText || isNil(raw) // "" then
	switch {
	case kind == globKind && isText:
		return r.glob(expr)
	case kind == listKind && isText:
		return r.list(strings.FieldsFunc(expr, func(c rune) bool { return c == ',' }))
	case kind == listKind:
		list, ok := saltvalue.ParseList(raw)
		if !ok {
			return nil, saltvalue.Needs("a target that is neither text nor a list")
		}
		var names []string
		for _, e := range list {
			name, ok := saltvalue.Text(e)
			if !ok {
				return nil, saltvalue.Needs("a target with other things than text")
			}
			names = append(names, name)
		}
		return r.list(names)
	}
	return nil, saltvalue.Needs("a target of type %q", kind)
}

// list is CkMinions._check_list_minions.
func (r *reader) list(names []string) (*crowd, error) {
	who := &crowd{}
	for _, name := range names {
		if r.accepted(name) {
			who.ids = append(who.ids, name)
		} else if r.set.major >= splitSince {
			return nil, saltvalue.Needs("a name that may be that of a resource")
		}
	}
	who.ids = unique(who.ids)
	return who, nil
}

// glob is CkMinions._check_glob_minions.
func (r *reader) glob(expr string) (*crowd, error) {
	if r.set.major >= splitSince && strings.Contains(expr, ",") {
		return nil, saltvalue.Needs("a target of several globs")
	}
	if expr == "" {
		return &crowd{}, nil
	}
	if !strings.ContainsAny(expr, "*?[") {
		return r.list([]string{expr})
	}
	if r.set.major >= splitSince && r.files.resources() {
		return nil, saltvalue.Needs("a glob that may mean resources of minions, too")
	}
	re, err := fnmatch.Compile(expr)
	if err != nil {
		return nil, saltvalue.Needs("a glob that only Python can read")
	}
	who := &crowd{}
	for _, id := range r.keys.IDs() {
		if re.MatchString(id) && !strings.HasPrefix(id, ".") {
			who.ids = append(who.ids, id)
		}
	}
	slices.SortFunc(who.ids, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	return who, nil
}

// accepted says whether a minion has an accepted key.
func (r *reader) accepted(id string) bool {
	_, ok := r.keys.Accepted(id)
	return ok && !strings.HasPrefix(id, ".")
}
