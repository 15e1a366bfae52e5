package keysadmin

import (
	"context"

	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
)

// Verbs implements admin.KeyKeeper, admin.KeyHolder and admin.KeyTaker for a node that may be no member.
type Verbs struct {
	Of func() (*Keys, error) // of the running membership
}

// Keys implements admin.KeyKeeper.
func (v Verbs) Keys(_ context.Context, q adminapi.KeyQuery) (adminapi.Keys, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.Keys{}, err
	}
	l, err := newKeyList(k.cfg.Self, q)
	if err != nil {
		return adminapi.Keys{}, err
	}
	return l.selectKeys(k.cfg.Log.View()), nil
}

// DecideKeys implements admin.KeyKeeper. Each key is decided about separately: one that has changed in the meantime
// stays.
func (v Verbs) DecideKeys(ctx context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.DecidedKeys{}, err
	}
	return k.decide(ctx, r)
}

// HeldKeys implements admin.KeyHolder.
func (v Verbs) HeldKeys(context.Context) (adminapi.HeldKeys, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.HeldKeys{}, err
	}
	out := adminapi.HeldKeys{Node: string(k.cfg.Self), IDs: []string{}}
	if k.cfg.Held != nil {
		out.IDs = append(out.IDs, k.cfg.Held.Held()...)
	}
	return out, nil
}

// ForgetHeldKeys implements admin.KeyHolder.
func (v Verbs) ForgetHeldKeys(ctx context.Context) (adminapi.HeldKeys, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.HeldKeys{}, err
	}
	out := adminapi.HeldKeys{Node: string(k.cfg.Self), IDs: []string{}}
	if k.cfg.Held == nil {
		return out, nil
	}
	ids, err := k.cfg.Held.Forget(ctx)
	out.IDs = append(out.IDs, ids...)
	k.cfg.HeldChanged()
	return out, err
}

// KeysOf implements admin.KeyTaker.
func (v Verbs) KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.KeysOf{}, err
	}
	// A decision that is based on the answer must not be based on less than other operators have decided.
	if err := k.cfg.Log.Barrier(ctx); err != nil {
		return adminapi.KeysOf{}, k.explainUndecided("this node does not know the cluster's keys yet", err)
	}
	return keysOf(k.cfg.Log.View(), r.IDs), nil
}

// PutKeys implements admin.KeyTaker. Each key is decided about separately. A key is denied only after the key beside
// it was put: a denied key shows the next reader that the decision was made.
func (v Verbs) PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	k, err := v.Of()
	if err != nil {
		return adminapi.DecidedKeys{}, err
	}
	p := newPutting(k.cfg.Log.View(), r, k.cfg.Audit("keys merge: "+r.From))
	for _, step := range []func() []state.Command{p.proposeKeys, p.proposeDenials} {
		cmds := step()
		if len(cmds) == 0 {
			continue
		}
		results, err := k.cfg.Log.Propose(ctx, cmds...)
		if err != nil {
			return p.out, k.explainUndecided("keys cannot be put", err)
		}
		p.noteResults(results)
	}
	return p.out, k.cfg.AwaitRev(ctx, p.out.Rev)
}

// decide proposes a state for keys that exist.
func (k *Keys) decide(ctx context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error) {
	out := adminapi.DecidedKeys{Keys: []adminapi.DecidedKey{}}
	want := state.KeyState(r.State)
	if r.State == adminapi.KeyDeleted {
		want = state.KeyDeleted
	}
	v := k.cfg.Log.View()
	var cmds []state.Command
	var ids []string
	for _, id := range r.IDs {
		if _, ok := v.Key(id); !ok {
			out.Keys = append(out.Keys, adminapi.DecidedKey{ID: id, Error: "there is no such key"})
			continue
		}
		ids = append(ids, id)
		cmds = append(cmds, state.KeySet{
			ID: id, State: want, BaseRev: v.KeyRev(id), SeenRev: v.Rev(), Audit: k.cfg.Audit("saltclusterctl"),
		})
	}
	if len(cmds) == 0 {
		return out, nil
	}
	results, err := k.cfg.Log.Propose(ctx, cmds...)
	switch {
	case k.cfg.LacksQuorum(err):
		return out, k.cfg.NoQuorum(err)
	case err != nil:
		return out, err
	}
	for i, res := range results {
		key := adminapi.DecidedKey{ID: ids[i]}
		if err := res.Err(); err != nil {
			key.Error = err.Error()
		}
		out.Rev = max(out.Rev, res.Rev)
		out.Keys = append(out.Keys, key)
	}
	return out, k.cfg.AwaitRev(ctx, out.Rev)
}
