package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/router"
)

// TagRule is one line of cluster_event_policy: where events fire whose tag a glob matches.
type TagRule struct{ Tag, Policy string }

// tagRules takes a map of globs to policies in the order it is written, or a list of such maps.
func tagRules(n *yaml.Node, p *[]TagRule) *mistake {
	const hint = "for example {'salt/beacon/*': all}"
	maps := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		maps = n.Content
	}
	out := []TagRule{}
	for _, m := range maps {
		if m = resolveAlias(m); m.Kind != yaml.MappingNode {
			return &mistake{node: m, msg: describeNode(m) + " is not a map of tags to policies", hint: hint}
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			var r TagRule
			if bad := decodeText(m.Content[i], &r.Tag); bad != nil {
				return bad
			}
			if bad := decodeText(m.Content[i+1], &r.Policy); bad != nil {
				return bad
			}
			if slices.ContainsFunc(out, func(o TagRule) bool { return o.Tag == r.Tag }) {
				return &mistake{node: m.Content[i], msg: r.Tag + " is given twice: only the first would count"}
			}
			out = append(out, r)
		}
	}
	*p = out
	return nil
}

func everyTagRule(v any) (string, string) {
	policy := oneOf(router.EventRouteNames...)
	for _, r := range v.([]TagRule) {
		if msg, hint := policy(r.Policy); msg != "" {
			return fmt.Sprintf("%s: %s", r.Tag, msg), hint
		}
		if msg, hint := tagGlob(r.Tag); msg != "" {
			return msg, hint
		}
	}
	return "", ""
}

func everyTag(v any) (string, string) {
	for _, s := range v.([]string) {
		if msg, hint := tagGlob(s); msg != "" {
			return msg, hint
		}
	}
	return "", ""
}

func tagGlob(s string) (string, string) {
	if s == "" {
		return "has an empty entry", ""
	}
	if _, err := fnmatch.Compile(s); err != nil {
		return fmt.Sprintf("%q is not a glob for tags", s), "for example salt/beacon/*"
	}
	return "", ""
}

// EveryMaster says whether the events of minions with that tag fire on every master.
func (e Events) EveryMaster(tag string) bool {
	for _, rule := range e.Policy {
		if glob, err := fnmatch.Compile(rule.Tag); err == nil && glob.MatchString(tag) {
			return rule.Policy == "all"
		}
	}
	return false
}
