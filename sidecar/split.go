package sidecar

import (
	"sync"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
)

// splitEvents sends the events of a call their different ways. The minion is answered when the ways that it waits for
// have ended, if one of them was answered: it would send all of the events again, and those that have fired would fire
// twice.
func (p *Proxy) splitEvents(c *call, parts []router.Part) {
	o := &splitOutcome{to: c.to}
	var ways []*call
	for _, part := range parts {
		sub, err := c.withEvents(part.Events)
		if err != nil {
			p.refuseRequest(c.request, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
			return
		}
		sub.progress.Fixed = part.All
		ways = append(ways, sub)
	}
	for i, part := range parts {
		if !part.Copy {
			o.expectPart(ways[i])
		} else if !p.expectCopy(o, ways[i], part) {
			ways[i] = nil
		}
	}
	for i, part := range parts {
		if ways[i] != nil {
			p.carryOut(ways[i], ways[i].startDecision(router.Decision{Kind: part.Kind, Node: part.Node, Others: part.Others,
				Repeat: c.progress.Repeat}))
		}
	}
}

// expectCopy makes room for a copy, which the minion need not wait for; false: there is none.
func (p *Proxy) expectCopy(o *splitOutcome, c *call, part router.Part) bool {
	to, size := part.Node, len(c.body)
	if !p.copies.takePlace(to, size) {
		p.metrics.countUnanswered(c.peek.Cmd, "copy")
		p.cfg.Logger.Warn("event not copied to a node", "node", to, "minion", c.env.ID, "err", errCopies)
		return false
	}
	o.expectCopy(c, func() { p.copies.freePlace(to, size) })
	return true
}

// withEvents is a call of its own with some events of c, by their place; nil: with all of them, and then byte for byte
// c.
func (c *call) withEvents(events []int) (*call, error) {
	x := *c.request
	sub := *c
	sub.request, sub.partial = &x, true
	if events == nil {
		return &sub, nil
	}
	plain, err := saltwire.PickEvents(c.plain, inPlaces(events))
	if err != nil {
		return nil, err
	}
	if sub.peek, err = saltwire.PeekLoad(plain); err != nil { // it may be routed again
		return nil, err
	}
	sub.plain = plain
	sub.env.Load = c.crypticle.Seal(nil, plain, nil)
	x.body = saltwire.AppendEnvelope(nil, sub.env)
	sub.env.Load = nil // body has it: a part may wait
	return &sub, nil
}

// inPlaces says which places are in an ascending list of them, asked in ascending order.
func inPlaces(places []int) func(int) bool {
	return func(i int) bool {
		for len(places) > 0 && places[0] < i {
			places = places[1:]
		}
		return len(places) > 0 && places[0] == i
	}
}

// splitOutcome is what becomes of a call that goes several ways, and answers it once.
type splitOutcome struct {
	to Responder

	mu       sync.Mutex
	waiting  int // ways under way that the minion waits for
	copies   int // and others
	answer   []byte
	answered bool
}

// partResponder notes the end of one way.
type partResponder struct {
	Responder
	outcome *splitOutcome
	of      *int   // waiting or copies
	leave   func() // gives back a copy's room; nil: the minion waits for this way
}

// Reply implements Responder, as the following do.
func (r *partResponder) Reply(reply []byte) { r.endPart(reply) }

func (r *partResponder) ReplyLent(reply []byte, _ func([]byte)) { r.endPart(reply) }

func (r *partResponder) Drop() { r.endPart(nil) }

func (r *partResponder) PassBack(bool) { r.endPart(nil) }

// the minion has its answer before a copy ends
func (r *partResponder) Gone() bool { return r.leave == nil && r.Responder.Gone() }

func (r *partResponder) endPart(reply []byte) {
	if r.leave != nil {
		r.leave()
	}
	r.outcome.endPart(r.of, reply)
}

// expectPart makes c a way that the minion waits for.
func (o *splitOutcome) expectPart(c *call) {
	o.waiting++
	c.to = &partResponder{Responder: o.to, outcome: o, of: &o.waiting}
}

// expectCopy makes c a way that the minion does not wait for.
func (o *splitOutcome) expectCopy(c *call, leave func()) {
	o.copies++
	c.to = &partResponder{Responder: o.to, outcome: o, of: &o.copies, leave: leave}
}

// endPart notes the end of a way; reply is nil when it had no answer.
func (o *splitOutcome) endPart(of *int, reply []byte) {
	o.mu.Lock()
	*of--
	if o.answer == nil {
		o.answer = reply
	}
	now := !o.answered && o.waiting == 0 && (o.answer != nil || o.copies == 0)
	o.answered = o.answered || now
	answer := o.answer
	o.mu.Unlock()
	switch {
	case !now:
	case answer != nil:
		o.to.Reply(answer)
	default:
		o.to.Drop()
	}
}
