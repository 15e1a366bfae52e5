package minionkeys

import (
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/signin"
)

// countEvery is how old the number of pending keys may be: all keys are read for it.
const countEvery = time.Second

// NewcomerLimits are the limits on keys that are not known yet.
func (k *Keys) NewcomerLimits(c config.SignIn) signin.Newcomers {
	p := &pendingKeys{view: k.cfg.Log.View, now: time.Now}
	return signin.Newcomers{
		Rate: float64(c.NewRate), PerAddress: float64(c.NewRatePerAddress), MaxPending: c.MaxPendingKeys, Pending: p.count,
		Waiting: p.has,
	}
}

// pendingKeys counts the keys that wait for acceptance, once a second at most.
type pendingKeys struct {
	view func() state.View
	now  func() time.Time

	mu  sync.Mutex
	at  time.Time
	rev uint64
	n   int
}

// has says whether the key of an id is one of them.
func (p *pendingKeys) has(id string) bool {
	k, ok := p.view().Key(id)
	return ok && k.State == state.KeyPending
}

func (p *pendingKeys) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.at) < countEvery {
		return p.n
	}
	p.at = now
	v := p.view()
	if v.Rev() == p.rev {
		return p.n
	}
	p.rev, p.n = v.Rev(), 0
	v.Keys(func(k state.Key) bool {
		if k.State == state.KeyPending {
			p.n++
		}
		return true
	})
	return p.n
}
