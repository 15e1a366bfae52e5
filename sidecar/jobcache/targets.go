package jobcache

import (
	"slices"
	"strings"

	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/saltvalue"
)

// findTargets is the list of minions that a load's target means to the master, for .minions.p: nil when the load has no
// target (salt/returners/local_cache.py:save_load, salt/utils/minions.py:CkMinions.check_minions). Only targets that go
// by ids are answered.
func (p *planner) findTargets(d fields) (*[]string, error) {
	raw, ok := d.Get("tgt")
	if expr, isText := saltvalue.Text(raw); !ok || isText && expr == "" {
		return nil, nil
	}
	kind := "glob"
	if v, ok := d.Get("tgt_type"); ok {
		if kind, ok = saltvalue.Text(v); !ok {
			return nil, needs("a target of a type that is not text")
		}
	}
	expr, isText := saltvalue.Text(raw)
	if kind == "glob" && isText {
		if p.c.major >= 3008 && strings.Contains(expr, ",") {
			return nil, needs("a target of several globs")
		}
		if !strings.ContainsAny(expr, "*?[") {
			return p.filterAccepted([]string{expr}), nil
		}
		return p.globTargets(expr)
	}
	if kind != "list" {
		return nil, needs("a job with a target of type %.20q to be listed", kind)
	}
	names := strings.FieldsFunc(expr, func(r rune) bool { return r == ',' })
	if !isText {
		list, ok := saltvalue.ParseList(raw)
		if !ok {
			return nil, needs("a target that is neither text nor a list")
		}
		for _, e := range list {
			name, ok := saltvalue.Text(e)
			if !ok {
				return nil, needs("a target with other things than text")
			}
			names = append(names, name)
		}
	}
	return p.filterAccepted(names), nil
}

func (p *planner) filterAccepted(names []string) *[]string {
	found := []string{}
	for _, name := range names {
		if _, ok := p.c.cfg.Keys.Accepted(name); ok && !strings.HasPrefix(name, ".") {
			found = append(found, name)
		}
	}
	return &found
}

// maxGlob bounds a glob, in bytes: compiled, it takes hundreds of times its length of memory.
const maxGlob = 1 << 10

func (p *planner) globTargets(expr string) (*[]string, error) {
	if len(expr) > maxGlob {
		return nil, needs("a glob of %d bytes", len(expr))
	}
	re, err := fnmatch.Compile(expr)
	if err != nil {
		return nil, needs("a glob that only Python can read")
	}
	found := []string{}
	for _, id := range p.c.cfg.Keys.IDs() {
		if re.MatchString(id) && !strings.HasPrefix(id, ".") {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return &found, nil
}
