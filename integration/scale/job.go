package scale

import (
	"time"
)

// bucket is a pace. Its tokens may be owed.
type bucket struct {
	rate, room, tokens float64
	at                 time.Duration
}

// take takes n tokens and tells how long until they are there.
func (b *bucket) take(now time.Duration, n int) time.Duration {
	b.tokens = min(b.tokens+(now-b.at).Seconds()*b.rate, b.room) - float64(n)
	b.at = now
	return time.Duration(max(0, -b.tokens/b.rate) * 1e9)
}

// Job is what became of one publication to all minions. Times are from the first minion that had it.
type Job struct {
	Heard     int
	LastHeard time.Duration
	Acked     int
	LastEnd   time.Duration // acknowledged, or given up
	Lost      int
	Retries   int
	Kept      int             // by the node that they came to, because the publisher did not answer in time
	Cached    time.Duration   // whole in the publisher's job cache
	Copied    []time.Duration // and in that of each replica
	LastEvent time.Duration   // fired, and taken by the master

	Fsyncs   int // of the publisher's journal
	CPU      map[string]time.Duration
	Networks []Network // of each node; the publisher is the first
}

// Network is what went over a node's card, bytes with everything that Ethernet adds.
type Network struct{ Sent, Got int64 }

// ret is a return.
type ret struct {
	job    *running
	minion int
	acked  bool
	taken  bool // by the publisher: a second time is recognised by its bytes
	waits  []func()
}

// running is a job under way.
type running struct {
	w         *World
	publisher *node
	began     time.Duration
	heard     bool
	has       []bool // by minion: in the publisher's job cache
	cached    int
	copies    []int // by node
	fired     int
	paces     []bucket
	out       Job
}

// Job publishes a job from the first node and tells what became of it.
func (w *World) Job() Job {
	j := &running{w: w, publisher: w.nodes[0], has: make([]bool, w.Minions), copies: make([]int, w.Nodes)}
	j.paces = []bucket{{busRate, busBurst, busBurst, 0}}
	if w.SaltMajor >= 3008 {
		j.paces = append(j.paces, bucket{jobRate, jobBurst, jobBurst, 0})
	}
	j.out.Copied = make([]time.Duration, w.Nodes)
	p := j.publisher
	p.own = p.newJournal()
	p.own.follow(j.files)
	p.own.follow(j.events)
	others := w.Replicas // the ring's first ones; where there are many nodes the publisher is rarely among them
	if w.Nodes <= w.Replicas {
		others = w.Nodes - 1
	}
	for i := range others {
		p.lines = append(p.lines, &copyLine{from: p, to: w.nodes[i+1], job: j})
	}
	p.daemon.Do(w.Intake, func() {
		for _, n := range w.nodes[1:] {
			p.daemon.Do(w.Fan, func() {
				p.peer(n, w.PubBytes, func() { n.daemon.Do(w.Fan, func() { j.publish(n) }) })
			})
		}
		j.publish(p)
	})
	w.Sim.Run(10 * time.Minute)
	j.out.CPU, j.out.Fsyncs = w.used(), p.own.Groups
	for _, n := range w.nodes {
		j.out.Networks = append(j.out.Networks, Network{n.sent, n.got})
	}
	return j.out
}

// publish seals a publication on one node and writes it to the minions there.
func (j *running) publish(n *node) {
	w := j.w
	n.daemon.Do(w.Seal, func() {
		shards := min(w.Cores, 16)
		for s := range shards {
			var mine []int
			for m := n.id + s*w.Nodes; m < w.Minions; m += w.Nodes * shards {
				mine = append(mine, m)
			}
			n.daemon.Series(len(mine), w.Deliver, func(i int) {
				n.outward(w.PubBytes, func() { j.hear(mine[i]) })
			}, nil)
		}
	})
}

// hear is a minion that has a job.
func (j *running) hear(m int) {
	w := j.w
	if !j.heard {
		j.heard, j.began = true, w.Sim.Now()
	}
	j.out.Heard++
	j.out.LastHeard = j.now()
	r := &ret{job: j, minion: m}
	w.Sim.After(w.Sim.Between(w.Think[0], w.Think[1]), func() { j.try(r, 1) })
}

func (j *running) now() time.Duration { return j.w.Sim.Now() - j.began }

// try sends a return. The request connections are another hand of cards than the subscriptions.
func (j *running) try(r *ret, try int) {
	w := j.w
	e := w.nodes[(r.minion*7+r.minion/w.Nodes+try)%w.Nodes]
	sent := &ret{job: j, minion: r.minion}
	e.inward(w.returnBytes(), func() { e.read(func() { e.serve(sent, func() { j.ack(r) }) }) })
	w.Sim.After(w.Sim.Between(returnTimer, returnTimerMax), func() {
		switch {
		case r.acked:
		case try == returnTries:
			j.out.Lost++
			j.out.LastEnd = j.now()
		default:
			j.out.Retries++
			j.try(r, try+1)
		}
	})
}

func (j *running) ack(r *ret) {
	if r.acked {
		return
	}
	r.acked = true
	j.out.Acked++
	j.out.LastEnd = j.now()
}

// read takes a request out of its socket when there is room for it.
func (n *node) read(serve func()) {
	if n.inFlight >= maxInFlight {
		n.unread.push(serve)
		return
	}
	n.inFlight++
	n.daemon.Do(n.w.withBytes(n.w.Request), serve)
}

// replied is a request that has its answer.
func (n *node) replied(ack func()) {
	n.inFlight--
	if n.unread.len() > 0 {
		n.inFlight++
		n.daemon.Do(n.w.withBytes(n.w.Request), n.unread.pop())
	}
	n.outward(n.w.AckBytes, ack)
}

// serve is what the node does with a return that a minion has sent to it.
func (n *node) serve(r *ret, ack func()) {
	w, p := n.w, r.job.publisher
	size := w.ReturnBytes + w.Payload
	if n == p {
		n.take(r, w.Reply, func() { n.replied(ack) })
		return
	}
	answered := false
	n.daemon.Do(w.withBytes(w.RelayOut), func() {
		n.peer(p, size+w.RelayBytes, func() {
			p.daemon.Do(w.withBytes(w.RelayIn), func() {
				p.take(r, w.Reply/4, func() {
					p.daemon.Do(w.RelayIn/2, func() {
						p.peer(n, w.AckBytes+w.RelayBytes, func() {
							n.daemon.Do(w.RelayBack, func() {
								if answered {
									return
								}
								answered = true
								n.replied(ack)
							})
						})
					})
				})
			})
		})
		w.Sim.After(peerTimeout, func() {
			if answered {
				return
			}
			answered = true
			r.job.out.Kept++
			n.keep(r, p, func() { n.replied(ack) })
		})
	})
}

// take journals a return of the node's own job.
func (p *node) take(r *ret, cost time.Duration, done func()) {
	if r.taken {
		r.settled(done)
		return
	}
	r.taken = true
	r.waits = append(r.waits, done)
	w := p.w
	p.own.append(entry{r, w.ReturnBytes + w.Payload, cost, func() {
		waits := r.waits
		r.waits = nil
		for _, f := range waits {
			f()
		}
	}})
}

// settled calls done when the return is in the journal.
func (r *ret) settled(done func()) {
	if r.waits == nil {
		done()
		return
	}
	r.waits = append(r.waits, done)
}

// keep puts a return into the journal for a publisher that does not answer.
func (n *node) keep(r *ret, p *node, done func()) {
	w := n.w
	if n.kept == nil {
		n.kept = n.newJournal()
		n.kept.follow(func(batch []*ret, then func()) { n.forward(p, batch, then) })
	}
	n.kept.append(entry{r, w.ReturnBytes + w.Payload, w.Reply, done})
}

// forward hands a batch over, which the other node answers when all of it is on disk.
func (n *node) forward(p *node, batch []*ret, then func()) {
	w := n.w
	n.daemon.Do(w.RelayOut+time.Duration(len(batch))*w.withBytes(w.Append), func() {
		n.peer(p, w.RelayBytes+len(batch)*(w.returnBytes()), func() {
			p.daemon.Do(w.RelayIn+time.Duration(len(batch))*w.Duplicate, func() {
				left := len(batch)
				for _, r := range batch {
					p.take(r, 0, func() {
						if left--; left == 0 {
							p.peer(n, w.RelayBytes, then)
						}
					})
				}
			})
		})
	})
}

// files writes the job cache, one return after the other.
func (j *running) files(batch []*ret, then func()) {
	w, p := j.w, j.publisher
	p.daemon.Series(len(batch), w.withBytes(w.Apply), func(i int) {
		r := batch[i]
		if j.has[r.minion] {
			return
		}
		j.has[r.minion] = true
		p.disk.returns++
		if j.cached++; j.cached == w.Minions {
			j.out.Cached = j.now()
		}
		for _, l := range p.lines {
			l.add()
		}
	}, then)
}

// events fires them, at the pace at which subscribers of the master's bus keep up, and waits until the master has taken
// them.
func (j *running) events(batch []*ret, then func()) {
	w, p := j.w, j.publisher
	wait := j.pace(len(batch))
	w.Sim.After(wait, func() {
		p.daemon.Do(time.Duration(len(batch))*w.withBytes(w.Fire), func() {
			p.master.Series(1, time.Duration(len(batch))*w.BusEvent, func(int) {}, func() {
				j.fired += len(batch)
				j.out.LastEvent = j.now()
				then()
			})
		})
	})
}

// pace is how long n events wait for their tokens.
func (j *running) pace(n int) (wait time.Duration) {
	for i := range j.paces {
		wait = max(wait, j.paces[i].take(j.w.Sim.Now(), n))
	}
	return wait
}
