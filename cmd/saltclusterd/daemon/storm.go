package daemon

import (
	"sync"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/signin"
)

// newcomers are the limits on keys that are not known yet.
func (s *service) newcomers() signin.Newcomers {
	c := s.m.d.cfg.SignIn
	p := &pendingKeys{view: s.m.Consensus.View, now: time.Now}
	return signin.Newcomers{
		Rate: float64(c.NewRate), PerAddress: float64(c.NewRatePerAddress), MaxPending: c.MaxPendingKeys, Pending: p.count,
		Waiting: p.has,
	}
}

// wayOfSignIn says who decides about a key (signin.Config.Way). Our own master is also asked when no node's is known to
// answer.
func (s *service) wayOfSignIn(id string) (here bool, others []node.ID) {
	d := s.m.Routes().SignIn(id)
	if d.Kind == router.ToNode {
		return false, append([]node.ID{d.Node}, d.Others...)
	}
	return true, d.Others
}

// pendingKeys counts the keys that wait for acceptance, once a second at most: it has to look at all.
type pendingKeys struct {
	view func() state.View
	now  func() time.Time

	mu  sync.Mutex
	at  time.Time
	rev uint64
	n   int
}

const countEvery = time.Second

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
