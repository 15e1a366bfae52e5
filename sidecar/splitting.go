package sidecar

import (
	"sync"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
)

// split sends the events of a call their different ways. The minion is answered when the ways that it waits for have
// ended, if one of them came to its end: it would send all of the events again, and those that have fired would fire twice.
func (p *Proxy) split(c *call, parts []router.Part) {
	o := &outcome{exchange: c.exchange}
	var ways []*call
	for _, part := range parts {
		sub, err := c.only(part.Events)
		if err != nil {
			p.refuse(c.exchange, p.cfg.Guard.Refuse(guard.ReasonMalformed, c.env.ID, c.remote))
			return
		}
		sub.fixed = part.All
		ways = append(ways, sub)
	}
	for i, part := range parts {
		if !part.Copy {
			o.expect(ways[i])
		} else if !p.expectCopy(o, ways[i], part) {
			ways[i] = nil
		}
	}
	for i, part := range parts {
		switch {
		case ways[i] == nil:
		case part.Kind == router.ToLocal:
			p.here(ways[i], part.Others)
		default:
			p.relay(ways[i], part.Node, part.Others)
		}
	}
}

// expectCopy makes room for a copy, which its minion need not wait for; false: there is none.
func (p *Proxy) expectCopy(o *outcome, c *call, part router.Part) bool {
	to, size := part.Node, len(c.body)
	if !p.copies.enter(to, size) {
		p.metrics.unanswered(c.peek.Cmd, "copy")
		p.cfg.Logger.Warn("event not copied to a node", "node", to, "minion", c.env.ID, "err", errCopies)
		return false
	}
	o.expectCopy(c, func() { p.copies.leave(to, size) })
	return true
}

// only is a call of its own with some events of c, by their place; nil: with all of them, and then byte for byte c.
func (c *call) only(events []int) (*call, error) {
	x := *c.exchange
	x.lend = nil // parts have their own hands
	sub := *c
	sub.exchange, sub.part = &x, true
	if events == nil {
		return &sub, nil
	}
	plain, err := saltwire.PickEvents(c.plain, among(events))
	if err != nil {
		return nil, err
	}
	if sub.peek, err = saltwire.PeekLoad(plain); err != nil { // its way may be decided again
		return nil, err
	}
	sub.plain = plain
	sub.env.Load = c.crypticle.Seal(nil, plain, nil)
	x.body = saltwire.AppendEnvelope(nil, sub.env)
	sub.env.Load = nil // body has it: a part may wait
	return &sub, nil
}

// among says which places are in an ascending list of them, asked in ascending order.
func among(places []int) func(int) bool {
	return func(i int) bool {
		for len(places) > 0 && places[0] < i {
			places = places[1:]
		}
		return len(places) > 0 && places[0] == i
	}
}

// outcome is what becomes of a call that goes several ways, and answers it once.
type outcome struct {
	exchange *exchange

	mu       sync.Mutex
	waiting  int // ways under way that the minion waits for
	copies   int // and others
	answer   []byte
	answered bool
}

// expect makes the end of c one that the minion waits for.
func (o *outcome) expect(c *call) {
	o.waiting++
	c.exchange.reply = func(reply []byte) { o.ended(&o.waiting, reply) }
	c.exchange.drop = func() { o.ended(&o.waiting, nil) }
}

// expectCopy makes the end of c one that nobody waits for.
func (o *outcome) expectCopy(c *call, leave func()) {
	o.copies++
	c.exchange.gone = func() bool { return false } // the minion has its answer before
	c.exchange.reply = func(reply []byte) { leave(); o.ended(&o.copies, reply) }
	c.exchange.drop = func() { leave(); o.ended(&o.copies, nil) }
}

// ended notes the end of a way; reply is nil when it led nowhere.
func (o *outcome) ended(of *int, reply []byte) {
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
		o.exchange.reply(answer)
	default:
		o.exchange.drop()
	}
}
