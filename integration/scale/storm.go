package scale

import (
	"slices"
	"time"
)

// As stock minions wait.
const (
	reconDefault = time.Second
	reconMax     = 10 * time.Second
	authTimeout  = 5 * time.Second
	authTries    = 7
	authPause    = 100 * time.Millisecond
	reauthDelay  = 10 * time.Second
	reqReconnect = 100 * time.Millisecond
)

// Storm is what became of the minions of a node that died. Times are from then on.
type Storm struct {
	Lost       int // subscriptions that broke
	LastServed time.Duration
	Half       time.Duration // until half of them were served again
	SignIns    int
	Tries      int
	Failed     int // gave up after auth_tries, and began anew
	Slowest    time.Duration
	CPU        map[string]time.Duration
}

// DefaultVersions are the minions' Salt versions, in turn.
var DefaultVersions = []int{3006, 3007, 3008}

// storming is a storm under way.
type storming struct {
	w      *World
	queues []*signIns
	next   int // of the load balancer's turns
	served []time.Duration
	out    Storm
}

// Storm kills the last node, which had so many subscriptions; 0: its share. The others' connections break when the load
// balancer has noticed, which a killed process makes it do at once. Minions of 3006 come back by themselves after a
// random time; those of 3007 and later sign in at once.
func (w *World) Storm(noticed time.Duration, versions []int) Storm {
	lost := w.Minions / w.Nodes
	st := &storming{w: w}
	for _, n := range w.nodes {
		st.queues = append(st.queues, n.newSignIns())
	}
	for m := range w.Minions {
		if m%w.Nodes == 0 { // its requests went there
			w.Sim.After(noticed+reqReconnect, func() { st.connect(func(*node) {}) })
		}
		if m >= lost {
			continue
		}
		st.out.Lost++
		version := versions[m%len(versions)]
		w.Sim.After(noticed, func() {
			if version < 3007 {
				w.Sim.After(min(w.Sim.Between(reconDefault, reconDefault+reconMax), reconMax), st.subscribe)
				return
			}
			st.authenticate(m, version)
		})
	}
	w.Sim.Run(30 * time.Minute)
	slices.Sort(st.served)
	st.out.LastServed, st.out.Half = st.served[len(st.served)-1], st.served[len(st.served)/2]
	st.out.CPU = w.used()
	return st.out
}

// connect is a new connection, which the load balancer gives to the living in turn.
func (st *storming) connect(then func(*node)) {
	w := st.w
	w.Sim.After(w.MinionRTT, func() {
		w.proxy.Do(w.ProxyConnect, func() {
			n := w.nodes[st.next%(w.Nodes-1)]
			st.next++
			w.Sim.After(w.RTT, func() { n.daemon.Do(w.Connect, func() { then(n) }) })
		})
	})
}

func (st *storming) subscribe() {
	st.connect(func(*node) { st.served = append(st.served, st.w.Sim.Now()) })
}

// authenticate is a minion that signs in, for as long as it takes.
func (st *storming) authenticate(m, version int) {
	began := st.w.Sim.Now()
	st.w.Sim.After(authPause, func() { st.try(m, version, began, 1) })
}

func (st *storming) try(m, version int, began time.Duration, count int) {
	w := st.w
	st.out.Tries++
	over := false
	t := &try{}
	st.connect(func(n *node) {
		n.inward(w.SignInBytes, func() {
			n.daemon.Do(w.Request, func() {
				t.at = w.Sim.Now()
				t.answer = func() {
					n.master.Do(w.AuthEvent, nil)
					n.outward(w.SignInReply, func() {
						if over {
							return
						}
						over = true
						st.out.SignIns++
						st.out.Slowest = max(st.out.Slowest, w.Sim.Now()-began)
						st.subscribe()
						st.announce(version)
					})
				}
				st.queues[n.id].put(m, t)
			})
		})
	})
	w.Sim.After(authTimeout, func() {
		if over {
			return
		}
		over, t.gone = true, true
		if count < authTries {
			st.try(m, version, began, count+1)
			return
		}
		st.out.Failed++
		w.Sim.After(w.Sim.Between(time.Second, reauthDelay), func() { st.authenticate(m, version) })
	})
}

// announce is what a minion says when it has started over: its start event, which the owner's saltclusterd fires
// itself. A minion of 3008 also registers its resources, which takes a master's Python.
func (st *storming) announce(version int) {
	w := st.w
	say := func(then func(owner *node)) {
		n, owner := w.nodes[w.Sim.Rand.IntN(w.Nodes-1)], w.nodes[w.Sim.Rand.IntN(w.Nodes-1)]
		n.inward(w.ReturnBytes, func() {
			n.daemon.Do(w.Request, func() {
				answer := func() { n.outward(w.AckBytes, func() {}) }
				if n == owner {
					then(owner)
					n.daemon.Do(w.Reply, answer)
					return
				}
				n.daemon.Do(w.RelayOut, func() {
					owner.daemon.Do(w.RelayIn, func() {
						then(owner)
						n.daemon.Do(w.RelayBack, answer)
					})
				})
			})
		})
	}
	say(func(owner *node) { owner.daemon.Do(w.Append+w.Fire, func() { owner.master.Do(w.BusEvent, nil) }) })
	if version >= 3008 {
		say(func(owner *node) { owner.master.Do(w.Python, nil) })
	}
}
