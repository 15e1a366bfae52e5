package daemon

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fnmatch"
	"saltclusterd/sidecar/saltcrypt"
)

// Keys implements admin.KeyKeeper.
func (d *Daemon) Keys(_ context.Context, q adminapi.KeyQuery) (adminapi.Keys, error) {
	m := d.current()
	if m == nil {
		return adminapi.Keys{}, d.errNoMember()
	}
	l := &keyList{KeyQuery: q, out: adminapi.Keys{From: string(d.id), Counts: map[string]int{}, Keys: []adminapi.MinionKey{}}}
	if q.Match != "" {
		glob, err := fnmatch.Compile(q.Match)
		if err != nil {
			return adminapi.Keys{}, adminapi.Errorf(adminapi.CodeInvalid, "", "%q is no pattern: %v", q.Match, err)
		}
		l.match = glob
	}
	return l.take(m.cons.View()), nil
}

// keyList collects the keys that somebody asks for.
type keyList struct {
	adminapi.KeyQuery
	match *regexp.Regexp
	out   adminapi.Keys
}

func (l *keyList) take(v state.View) adminapi.Keys {
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

// DecideKeys implements admin.KeyKeeper. Each key is decided about for itself: one that was changed meanwhile stays.
func (d *Daemon) DecideKeys(ctx context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error) {
	m := d.current()
	if m == nil {
		return adminapi.DecidedKeys{}, d.errNoMember()
	}
	out := adminapi.DecidedKeys{Keys: []adminapi.DecidedKey{}}
	want := state.KeyState(r.State)
	if r.State == adminapi.KeyDeleted {
		want = state.KeyDeleted
	}
	v := m.cons.View()
	var cmds []state.Command
	var ids []string
	for _, id := range r.IDs {
		if _, ok := v.Key(id); !ok {
			out.Keys = append(out.Keys, adminapi.DecidedKey{ID: id, Error: "there is no such key"})
			continue
		}
		ids = append(ids, id)
		cmds = append(cmds, state.KeySet{ID: id, State: want, BaseRev: v.KeyRev(id), SeenRev: v.Rev(), Audit: m.audit("saltclusterctl")})
	}
	if len(cmds) == 0 {
		return out, nil
	}
	results, err := m.cons.Propose(ctx, cmds...)
	switch {
	case m.lacksQuorum(err):
		return out, m.noQuorum(err)
	case err != nil:
		return out, err
	}
	for i, res := range results {
		k := adminapi.DecidedKey{ID: ids[i]}
		if err := res.Err(); err != nil {
			k.Error = err.Error()
		}
		out.Rev = max(out.Rev, res.Rev)
		out.Keys = append(out.Keys, k)
	}
	return out, m.awaitRev(ctx, out.Rev)
}
