package sidecar

import (
	"errors"

	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/router"
)

// fireEvents fires the events of a call on the local master's bus without its Python. When that does not work nothing
// was fired.
func (p *Proxy) fireEvents(c *call) {
	c.trace.Step("bus")
	p.wg.Add(1)
	p.cfg.Events.Take(c.peek.ID, c.plain, c.at, func(reply []byte, err error) {
		defer p.wg.Done()
		result := router.MasterOnly
		switch {
		case err == nil:
			p.finishAction(c, router.DoFire, c.sealReply(reply))
			return
		case errors.Is(err, events.ErrMalformed):
			result = router.Malformed
		case errors.Is(err, events.ErrUnsure):
			result = router.Unanswered
		}
		p.wg.Go(func() { p.finishWith(c, c.actionOutcome(router.DoFire, "", result), err) }) // the goroutine may be the service's
	})
}
