package minionkeys

import (
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/consensus/state"
)

const (
	// keepChanges is for how long changes of keys are remembered: longer than publications are given late.
	keepChanges = 2 * time.Minute
	// clocksApart is how far the cluster's time, as the node that decided about a key has it, may be behind this node's.
	clocksApart = 5 * time.Second
)

// keyChanges are the latest changes of keys, and which minions share one.
type keyChanges struct {
	mu     sync.Mutex
	rev    uint64              // up to which changes are known
	latest []state.KeyChange   // deletions, and keys that came again, no older than keepChanges
	keyOf  map[string]string   // by minion: its accepted key
	having map[string][]string // by accepted key: the minions that have it
}

// LeaveOut lists the minions that must not be given what was published so long ago: those of started, of which a
// process has signed in after it; the accepted ones that have the key of one of them; and those whose key was deleted
// later, or has come again since. The ids of a deltaproxy are one process, which has subscribed before its proxies sign
// in; all have its key (salt/metaproxy/deltaproxy.py gives them its pki_dir), unless their keys were deleted meanwhile.
// Changes of keys are dated with the cluster's time.
func (k *Keys) LeaveOut(started []string, age time.Duration) []string {
	k.changes.mu.Lock()
	defer k.changes.mu.Unlock()
	now := k.cfg.Now()
	k.changes.follow(k.cfg.Log.View(), now)
	all := slices.Clone(started)
	for _, id := range started {
		all = append(all, k.changes.having[k.changes.keyOf[id]]...)
	}
	from := now.Add(-age - clocksApart).UnixMilli()
	for _, c := range k.changes.latest {
		if c.At >= from {
			all = append(all, c.ID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// follow brings c up to date. now is the time of the cluster. The caller holds mu.
func (c *keyChanges) follow(view state.View, now time.Time) {
	if c.keyOf == nil {
		c.keyOf, c.having = map[string]string{}, map[string][]string{}
	}
	changes := view.KeysSince(c.rev)
	c.rev = view.Rev()
	for _, change := range changes {
		c.setKey(change)
	}
	oldest := now.Add(-keepChanges).UnixMilli()
	c.latest = slices.DeleteFunc(append(c.latest, changes...),
		func(c state.KeyChange) bool { return c.At < oldest || !c.Deleted && c.Again == 0 })
}

// setKey notes which accepted key a minion has. The caller holds mu.
func (c *keyChanges) setKey(change state.KeyChange) {
	id, key := change.ID, ""
	if !change.Deleted && change.State == state.KeyAccepted {
		key = strings.TrimSpace(change.Pub)
	}
	before := c.keyOf[id]
	if key == before {
		return
	}
	if before != "" {
		if left := slices.DeleteFunc(c.having[before], func(other string) bool { return other == id }); len(left) > 0 {
			c.having[before] = left
		} else {
			delete(c.having, before)
		}
		delete(c.keyOf, id)
	}
	if key != "" {
		c.keyOf[id] = key
		c.having[key] = append(c.having[key], id)
	}
}
