package keysadmin

import (
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/sidecar/adminapi"
)

// putting is the state of one PutKeys.
type putting struct {
	view  state.View
	r     adminapi.PutKeysRequest
	audit state.Audit
	out   adminapi.DecidedKeys
	at    []int // the index in r.Keys of each command of this step
}

func newPutting(v state.View, r adminapi.PutKeysRequest, audit state.Audit) *putting {
	out := adminapi.DecidedKeys{Rev: v.Rev(), Keys: make([]adminapi.DecidedKey, len(r.Keys))}
	p := &putting{view: v, r: r, audit: audit, out: out}
	for i, k := range r.Keys {
		p.out.Keys[i].ID = k.ID
		switch {
		case k.State != "" && !keydir.IsKey(k.Pub), k.Denied != "" && !keydir.IsKey(k.Denied):
			p.out.Keys[i].Error = "invalid public key"
		case k.State == "" && v.KeyRev(k.ID) != k.BaseRev:
			p.out.Keys[i].Error = "the key was changed in the meantime"
		}
	}
	return p
}

func (p *putting) proposeKeys() (cmds []state.Command) {
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

// proposeDenials comes after proposeKeys. It denies the key that was replaced, or else the one that the request names.
func (p *putting) proposeDenials() (cmds []state.Command) {
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

func (p *putting) noteResults(results []state.Result) {
	for n, res := range results {
		k := &p.out.Keys[p.at[n]]
		if err := res.Err(); err != nil {
			k.Error = err.Error()
			continue
		}
		p.out.Rev = max(p.out.Rev, res.Rev)
	}
}
