package keysadmin

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/saltcrypt"
)

// keyList collects the keys that a query selects.
type keyList struct {
	adminapi.KeyQuery
	match *regexp.Regexp
	out   adminapi.Keys
}

func newKeyList(self node.ID, q adminapi.KeyQuery) (*keyList, error) {
	out := adminapi.Keys{From: string(self), Counts: map[string]int{}, Keys: []adminapi.MinionKey{}}
	l := &keyList{KeyQuery: q, out: out}
	if q.Match != "" {
		glob, err := fnmatch.Compile(q.Match)
		if err != nil {
			return nil, adminapi.Errorf(adminapi.CodeInvalid, "", "invalid pattern %q: %v", q.Match, err)
		}
		l.match = glob
	}
	return l, nil
}

// selectKeys returns the keys of a view, or with History all changes of them.
func (l *keyList) selectKeys(v state.View) adminapi.Keys {
	l.out.Rev = v.Rev()
	if l.History {
		changes := v.KeysSince(0)
		slices.Reverse(changes)
		for _, c := range changes {
			l.add(c.ID, cmp.Or(string(c.State), adminapi.KeyDeleted), c.Pub, c.Rev, c.Audit)
		}
	} else {
		v.Keys(func(k state.Key) bool {
			l.add(k.ID, string(k.State), k.Pub, k.Rev, k.Audit)
			return true
		})
		if t, ok := v.Tombstone(l.ID); ok && l.ID != "" {
			l.add(t.ID, adminapi.KeyDeleted, "", t.Rev, t.Audit)
		}
	}
	for _, k := range v.DeniedKeys() {
		l.add(k.ID, adminapi.KeyDenied, k.Pub, k.Rev, k.Audit)
	}
	if l.History {
		slices.SortStableFunc(l.out.Keys, func(a, b adminapi.MinionKey) int { return cmp.Compare(b.Rev, a.Rev) })
	}
	return l.out
}

func (l *keyList) add(id, st, pub string, rev uint64, audit state.Audit) {
	l.out.Counts[st]++
	switch {
	case l.ID != "" && id != l.ID, l.State != "" && st != l.State, l.match != nil && !l.match.MatchString(id),
		!l.History && l.After != "" && id <= l.After:
		return
	case len(l.out.Keys) >= l.Limit:
		l.out.More++
		return
	}
	k := adminapi.MinionKey{ID: id, State: st, Rev: rev, By: string(audit.By), Cause: audit.Cause}
	if audit.At != 0 {
		k.At = time.UnixMilli(audit.At).UTC()
	}
	if pub != "" {
		k.Fingerprint = saltcrypt.Fingerprint(pub)
	}
	l.out.Keys = append(l.out.Keys, k)
}

// keysOf returns what is decided about some minions: a key, that it was deleted, and a denied key.
func keysOf(v state.View, ids []string) adminapi.KeysOf {
	q := adminapi.KeyQuery{Limit: 3 * len(ids)}
	l := &keyList{KeyQuery: q, out: adminapi.Keys{Counts: map[string]int{}, Keys: []adminapi.MinionKey{}}}
	for _, id := range ids {
		if k, ok := v.Key(id); ok {
			l.add(id, string(k.State), k.Pub, k.Rev, k.Audit)
		} else if t, ok := v.Tombstone(id); ok {
			l.add(id, adminapi.KeyDeleted, "", t.Rev, t.Audit)
		}
		if k, ok := v.Denied(id); ok {
			l.add(id, adminapi.KeyDenied, k.Pub, k.Rev, k.Audit)
		}
	}
	return adminapi.KeysOf{Rev: v.Rev(), Keys: l.out.Keys}
}
