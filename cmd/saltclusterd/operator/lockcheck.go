package operator

import (
	"context"

	"saltclusterd/sidecar/health"
)

// LockCheck is the check behind /livez: whether a function that takes the locks of serving minions returns.
type LockCheck struct {
	take  func()
	under chan struct{} // closed when the call that is under way has returned; nil: none is
}

// NewLockCheck returns a LockCheck.
func NewLockCheck(take func()) *LockCheck { return &LockCheck{take: take} }

// Check waits for the function for as long as ctx allows. A call that is stuck is waited for again; no second one
// begins.
func (p *LockCheck) Check(ctx context.Context) health.Result {
	if p.under == nil {
		p.under = make(chan struct{})
		go func(done chan struct{}) { // which ends with the call; if that never ends this process cannot be saved
			defer close(done)
			p.take()
		}(p.under)
	}
	select {
	case <-p.under:
		p.under = nil
		return fine
	case <-ctx.Done():
		return health.Result{
			Level: health.Fail, Reason: "a lock needed to serve minions is not released: internal deadlock suspected",
			Hint: "saltclusterctl bundle FILE, then systemctl restart saltclusterd; please report this",
		}
	}
}
