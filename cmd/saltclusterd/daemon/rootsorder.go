package daemon

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

const (
	// rootsOrderAsk is how often the other masters are asked in which order they list their directories.
	rootsOrderAsk = 5 * time.Second
	// rootsOrderFirst is how long the roots wait for the word of members that are not seen alive.
	rootsOrderFirst = 3 * time.Second
)

// rootsPaths are the directories of a node's slots, as they are listed in its master's configuration below root_dir.
type rootsPaths map[roots.SlotName]string

// pathsOf is what others compare with theirs.
func pathsOf(slots []roots.Slot, rootDir string) rootsPaths {
	out := rootsPaths{}
	for _, s := range slots {
		path := s.Dir
		if rel, err := filepath.Rel(filepath.Clean("/"+rootDir), s.Dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			path = "/" + rel
		}
		out[s.Name] = path
	}
	return out
}

// list is the order of an environment's directories.
func (p rootsPaths) list(kind, env string) string {
	var slots []roots.SlotName
	for s := range p {
		if s.Kind == kind && s.Env == env {
			slots = append(slots, s)
		}
	}
	slices.SortFunc(slots, roots.SlotName.Compare)
	paths := make([]string, len(slots))
	for i, s := range slots {
		paths[i] = p[s]
	}
	return strings.Join(paths, ", ")
}

// crossed says whether two nodes have a directory at different places of an environment's list: what belongs to one of its
// directories would be put into another.
func crossed(a, b rootsPaths, kind, env string) bool {
	for s, path := range a {
		if s.Kind != kind || s.Env != env {
			continue
		}
		if theirs, ok := b[s]; ok && theirs == path {
			continue
		}
		for o, theirs := range b {
			if o != s && o.Kind == kind && o.Env == env && theirs == path {
				return true
			}
		}
	}
	return false
}

// ordered compares the lists of all nodes. Where fewer than most of them agree with this node, its directories of that
// environment are left alone; notes say what an operator should know beside that.
func ordered(self rootsPaths, others map[node.ID]rootsPaths) (bad map[roots.SlotName]string, notes []string) {
	bad = map[roots.SlotName]string{}
	seen := map[string]bool{}
	for _, s := range slices.SortedFunc(maps.Keys(self), roots.SlotName.Compare) {
		if key := s.Kind + ":" + s.Env; !seen[key] {
			seen[key] = true
			reason, note := orderedEnv(self, others, s.Kind, s.Env)
			for o := range self {
				if reason != "" && o.Kind == s.Kind && o.Env == s.Env {
					bad[o] = reason
				}
			}
			if note != "" {
				notes = append(notes, note)
			}
		}
	}
	return bad, append(notes, unlisted(self, others)...)
}

func orderedEnv(self rootsPaths, others map[node.ID]rootsPaths, kind, env string) (reason, note string) {
	var against []string
	for _, id := range slices.Sorted(maps.Keys(others)) {
		if crossed(self, others[id], kind, env) {
			against = append(against, fmt.Sprintf("%s lists %s", id, others[id].list(kind, env)))
		}
	}
	if len(against) == 0 {
		return "", ""
	}
	text := fmt.Sprintf("the directories of %s_roots, environment %s, stand in another order: %s; this node lists %s",
		kind, env, strings.Join(against, "; "), self.list(kind, env))
	if agree := len(others) + 1 - len(against); 2*agree > len(others)+1 {
		return "", text + "; they are left alone there"
	}
	return text + "; list them alike in the masters' configuration, then restart saltclusterd", ""
}

// unlisted tells of directories that not all nodes have in their lists.
func unlisted(self rootsPaths, others map[node.ID]rootsPaths) (notes []string) {
	theirs := map[roots.SlotName][]string{}
	for _, id := range slices.Sorted(maps.Keys(others)) {
		for s, path := range others[id] {
			if _, ok := self[s]; !ok {
				theirs[s] = append(theirs[s], fmt.Sprintf("%s: %s", id, path))
			}
		}
		for s, path := range self {
			if _, ok := others[id][s]; !ok {
				notes = append(notes, fmt.Sprintf("%s (%s) is not in the configuration of %s's master", s, path, id))
			}
		}
	}
	for s, where := range theirs {
		notes = append(notes, fmt.Sprintf("%s (%s) is not in the configuration of this node's master", s, strings.Join(where, ", ")))
	}
	slices.Sort(notes)
	return notes
}

// rootsOrder keeps what the other masters say about the order of their directories.
type rootsOrder struct {
	self   rootsPaths
	others func() []node.ID
	alive  func(node.ID) bool
	ask    func(context.Context, node.ID) (rootsPaths, error)

	first chan struct{} // closed when it is known enough

	mu    sync.Mutex
	said  map[node.ID]rootsPaths
	bad   map[roots.SlotName]string
	notes []string
}

func (s *service) newRootsOrder(slots []roots.Slot) *rootsOrder {
	return &rootsOrder{
		self: pathsOf(slots, s.m.d.master.Text("root_dir")), others: s.m.otherMasters, alive: s.m.alive,
		first: make(chan struct{}), said: map[node.ID]rootsPaths{},
		ask: func(ctx context.Context, id node.ID) (rootsPaths, error) {
			r, err := s.m.rootsReportOf(ctx, id)
			return r.Paths, err
		},
	}
}

// run asks until ctx ends.
func (o *rootsOrder) run(ctx context.Context) {
	began, known := time.Now(), false
	for {
		missing := o.askAll(ctx)
		if !known {
			waiting := slices.ContainsFunc(missing, o.alive) || len(missing) > 0 && time.Since(began) < rootsOrderFirst
			if known = !waiting || time.Since(began) > rootsGrace; known {
				close(o.first)
			}
		}
		pause := rootsOrderAsk
		if !known {
			pause = rootsOrderFirst / 20
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// askAll asks the other masters and compares. It returns those that have never answered.
func (o *rootsOrder) askAll(ctx context.Context) (missing []node.ID) {
	var wg sync.WaitGroup
	others := o.others()
	for _, id := range others {
		if !o.alive(id) && o.heard(id) {
			continue
		}
		wg.Go(func() {
			paths, err := o.ask(ctx, id)
			if err != nil {
				return // what it said before still holds
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.said[id] = paths
		})
	}
	wg.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.said, func(id node.ID, _ rootsPaths) bool { return !slices.Contains(others, id) })
	told := map[node.ID]rootsPaths{}
	for _, id := range others {
		paths, ok := o.said[id]
		if !ok {
			missing = append(missing, id)
		} else if len(paths) > 0 { // else its roots are not replicated
			told[id] = paths
		}
	}
	o.bad, o.notes = ordered(o.self, told)
	return missing
}

func (o *rootsOrder) heard(id node.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said[id] != nil
}

// Bad is roots.Config.Order.
func (o *rootsOrder) Bad(ctx context.Context) map[roots.SlotName]string {
	select {
	case <-o.first:
	case <-ctx.Done():
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bad
}

func (o *rootsOrder) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notes
}
