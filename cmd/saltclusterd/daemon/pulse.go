package daemon

import (
	"context"

	"saltclusterd/sidecar/health"
)

// Pulse returns when this process has had every lock that serving minions takes. One that never returns from it does not
// serve any more, whatever else it does. It waits for no disk, no network and no other process.
func (d *Daemon) Pulse() {
	m := d.current()
	if m == nil {
		return
	}
	m.cons.View()
	m.routes()
	if m.ready() {
		m.svc.pub.Stats()
		m.svc.reqs.Stats()
		m.svc.drain.Draining()
	}
}

// pulse is the check behind /livez: whether Pulse returns.
type pulse struct {
	of    func()
	under chan struct{} // one that has not returned yet
}

// check waits for Pulse for as long as ctx allows. One that is stuck is waited for again instead of being begun once more.
func (p *pulse) check(ctx context.Context) health.Result {
	if p.under == nil {
		p.under = make(chan struct{})
		go func(done chan struct{}) { // which ends with Pulse; when that never does this process cannot be saved
			defer close(done)
			p.of()
		}(p.under)
	}
	select {
	case <-p.under:
		p.under = nil
		return fine
	case <-ctx.Done():
		return health.Result{
			Level: health.Fail, Reason: "a lock that serving minions takes is not let go of",
			Hint: "saltclusterctl bundle FILE, then systemctl restart saltclusterd; and report it",
		}
	}
}
