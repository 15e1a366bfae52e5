package roots

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/gossip/node"
)

// Paths are the directories of a node's slots, as its master's configuration lists them below root_dir.
type Paths map[SlotName]string

// PathsOf returns what other nodes compare with their own.
func PathsOf(slots []Slot, rootDir string) Paths {
	out := Paths{}
	for _, s := range slots {
		path := s.Dir
		rel, err := filepath.Rel(filepath.Clean("/"+rootDir), s.Dir)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			path = "/" + rel
		}
		out[s.Name] = path
	}
	return out
}

// list returns the directories of an environment in their order.
func (p Paths) list(kind, env string) string {
	var slots []SlotName
	for s := range p {
		if s.Kind == kind && s.Env == env {
			slots = append(slots, s)
		}
	}
	slices.SortFunc(slots, SlotName.Compare)
	paths := make([]string, len(slots))
	for i, s := range slots {
		paths[i] = p[s]
	}
	return strings.Join(paths, ", ")
}

// crosses says whether two nodes have a directory at different places of an environment's list. What belongs to one of
// its directories would be put into another.
func (p Paths) crosses(other Paths, kind, env string) bool {
	for s, path := range p {
		if s.Kind != kind || s.Env != env {
			continue
		}
		if theirs, ok := other[s]; ok && theirs == path {
			continue
		}
		for o, theirs := range other {
			if o != s && o.Kind == kind && o.Env == env && theirs == path {
				return true
			}
		}
	}
	return false
}

// Compare compares the lists of this node with those of others. Where no majority agrees with this node, the slots of
// that environment are in bad, each with the reason; notes are what an operator should know besides.
func (p Paths) Compare(others map[node.ID]Paths) (bad map[SlotName]string, notes []string) {
	bad = map[SlotName]string{}
	seen := map[string]bool{}
	for _, s := range slices.SortedFunc(maps.Keys(p), SlotName.Compare) {
		if key := s.Kind + ":" + s.Env; !seen[key] {
			seen[key] = true
			reason, note := p.compareEnv(others, s.Kind, s.Env)
			for o := range p {
				if reason != "" && o.Kind == s.Kind && o.Env == s.Env {
					bad[o] = reason
				}
			}
			if note != "" {
				notes = append(notes, note)
			}
		}
	}
	return bad, append(notes, p.listDifferences(others)...)
}

// compareEnv compares the lists of one environment. reason is empty if a majority agrees with this node.
func (p Paths) compareEnv(others map[node.ID]Paths, kind, env string) (reason, note string) {
	var against []string
	for _, id := range slices.Sorted(maps.Keys(others)) {
		if p.crosses(others[id], kind, env) {
			against = append(against, fmt.Sprintf("%s lists %s", id, others[id].list(kind, env)))
		}
	}
	if len(against) == 0 {
		return "", ""
	}
	text := fmt.Sprintf("the directories of %s_roots, environment %s, have another order: %s; this node lists %s",
		kind, env, strings.Join(against, "; "), p.list(kind, env))
	if agree := len(others) + 1 - len(against); 2*agree > len(others)+1 {
		return "", text + "; they are not replicated there"
	}
	return text + "; list them in the same order in the masters' configuration, then restart saltclusterd", ""
}

// listDifferences describes directories that not all nodes have in their lists.
func (p Paths) listDifferences(others map[node.ID]Paths) (notes []string) {
	theirs := map[SlotName][]string{}
	for _, id := range slices.Sorted(maps.Keys(others)) {
		for s, path := range others[id] {
			if _, ok := p[s]; !ok {
				theirs[s] = append(theirs[s], fmt.Sprintf("%s: %s", id, path))
			}
		}
		for s, path := range p {
			if _, ok := others[id][s]; !ok {
				notes = append(notes, fmt.Sprintf("%s (%s) is not in the configuration of %s's master", s, path, id))
			}
		}
	}
	for s, where := range theirs {
		notes = append(notes,
			fmt.Sprintf("%s (%s) is not in the configuration of this node's master", s, strings.Join(where, ", ")))
	}
	slices.Sort(notes)
	return notes
}
