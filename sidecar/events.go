package sidecar

import (
	"errors"

	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/router"
)

// fire fires the events of a call on the local master's bus without its Python. When that does not work nothing was
// fired.
func (p *Proxy) fire(c *call) {
	c.trace.Step("bus")
	p.wg.Add(1)
	p.cfg.Events.Take(c.peek.ID, c.plain, c.at, func(reply []byte, err error) {
		defer p.wg.Done()
		result := router.MasterOnly
		switch {
		case err == nil:
			p.finish(c, router.DoFire, c.seal(reply))
			return
		case errors.Is(err, events.ErrMalformed):
			result = router.Malformed
		case errors.Is(err, events.ErrUnsure):
			result = router.Unanswered
		}
		p.wg.Go(func() { p.finishWith(c, c.outcome(router.DoFire, "", result), err) }) // the goroutine may be the service's
	})
}
