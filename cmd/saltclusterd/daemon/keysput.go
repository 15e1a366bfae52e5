package daemon

import (
	"context"
	"fmt"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/sidecar/adminapi"
)

// KeysOf implements admin.KeyTaker.
func (d *Daemon) KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	m := d.current()
	if m == nil {
		return adminapi.KeysOf{}, d.errNoMember()
	}
	if err := m.cons.Barrier(ctx); err != nil { // what is decided on the answer must not be older than what somebody else has decided
		return adminapi.KeysOf{}, m.notDecided("the cluster's keys cannot be told", err)
	}
	return keysOf(m.cons.View(), r.IDs), nil
}

func keysOf(v state.View, ids []string) adminapi.KeysOf {
	l := &keyList{KeyQuery: adminapi.KeyQuery{Limit: 3 * len(ids)}, out: adminapi.Keys{Counts: map[string]int{}, Keys: []adminapi.MinionKey{}}}
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

// notDecided words the failure of something that needs a majority.
func (m *member) notDecided(what string, err error) error {
	if m.lacksQuorum(err) {
		return fmt.Errorf("%s: %w", what, m.noQuorum(err))
	}
	return err
}

// PutKeys implements admin.KeyTaker. Each key is decided about for itself; what is to be denied beside it follows only when it was taken, for
// by what is denied the next one who looks knows what was decided.
func (d *Daemon) PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	m := d.current()
	if m == nil {
		return adminapi.DecidedKeys{}, d.errNoMember()
	}
	p := newPutting(m.cons.View(), r, m.audit("keys merge: "+r.From))
	for _, step := range []func() []state.Command{p.keys, p.denials} {
		cmds := step()
		if len(cmds) == 0 {
			continue
		}
		results, err := m.cons.Propose(ctx, cmds...)
		if err != nil {
			return p.out, m.notDecided("keys cannot be put", err)
		}
		p.took(results)
	}
	return p.out, m.awaitRev(ctx, p.out.Rev)
}

// putting is one PutKeys.
type putting struct {
	view  state.View
	r     adminapi.PutKeysRequest
	audit state.Audit
	out   adminapi.DecidedKeys
	at    []int // whom the commands of this step are about
}

func newPutting(v state.View, r adminapi.PutKeysRequest, audit state.Audit) *putting {
	p := &putting{view: v, r: r, audit: audit, out: adminapi.DecidedKeys{Rev: v.Rev(), Keys: make([]adminapi.DecidedKey, len(r.Keys))}}
	for i, k := range r.Keys {
		p.out.Keys[i].ID = k.ID
		switch {
		case k.State != "" && !keydir.IsKey(k.Pub), k.Denied != "" && !keydir.IsKey(k.Denied):
			p.out.Keys[i].Error = "what is to be put is no public key"
		case k.State == "" && v.KeyRev(k.ID) != k.BaseRev:
			p.out.Keys[i].Error = "somebody has decided about it meanwhile"
		}
	}
	return p
}

func (p *putting) keys() (cmds []state.Command) {
	p.at = nil
	for i, k := range p.r.Keys {
		if k.State == "" || p.out.Keys[i].Error != "" {
			continue
		}
		cmds = append(cmds, state.KeySet{
			ID: k.ID, State: state.KeyState(k.State), Pub: k.Pub, BaseRev: k.BaseRev, SeenRev: p.r.Seen, Audit: p.audit,
		})
		p.at = append(p.at, i)
	}
	return cmds
}

// denials come after keys: of the key that gave way, else of the one that was named.
func (p *putting) denials() (cmds []state.Command) {
	p.at = nil
	for i, k := range p.r.Keys {
		pub := k.Denied
		if old, ok := p.view.Key(k.ID); ok && k.State != "" && old.Rev == k.BaseRev && old.Pub != k.Pub {
			pub = old.Pub
		}
		if pub == "" || p.out.Keys[i].Error != "" {
			continue
		}
		cmds = append(cmds, state.DeniedSet{ID: k.ID, Pub: pub, Audit: p.audit})
		p.at = append(p.at, i)
	}
	return cmds
}

func (p *putting) took(results []state.Result) {
	for n, res := range results {
		k := &p.out.Keys[p.at[n]]
		if err := res.Err(); err != nil {
			k.Error = err.Error()
			continue
		}
		p.out.Rev = max(p.out.Rev, res.Rev)
	}
}
