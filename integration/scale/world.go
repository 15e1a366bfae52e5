package scale

import (
	"fmt"
	"time"
)

// Site says what is simulated. Zero values take the defaults named.
type Site struct {
	Nodes, Minions int
	Cores          int  // of each node (4)
	Shared         bool // all processes, minions and load balancers too, are on one machine, as in the lab
	Direct         bool // no load balancer between
	ProxyPerPort   bool // one load balancer's process has the subscriptions, another one the requests, as in the lab
	ProxyThreads   int  // of the load balancer (4)
	SaltMajor      int  // of the masters: what their bus costs differs (3006)
	Replicas       int  // cluster_job_replicas (3)
	Answering      int  // so many of the minions return, all hear (all)
	Payload        int  // bytes of a return beyond those of test.ping

	RTT       time.Duration // between nodes (300 µs), and from the load balancer
	MinionRTT time.Duration // between minions and the load balancer (1 ms)
	Bandwidth float64       // of each network card, bits per second and direction (10 Gbit)
	Think     [2]time.Duration

	// Share is the part of the one machine's time that others leave, with Shared (1).
	Share float64
	// Slower says how much slower than in the table of costs the processes of a kind are: what a calibration has found.
	Slower Factors
	Seed   uint64
}

// Factors are of CPU, by process; 0: 1.
type Factors struct{ Publisher, Others, Master, Proxy, Minions float64 }

// masterThreads is how many processes of a master work at a time at most.
const masterThreads = 5

func orElse[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (s *Site) fill() {
	orElse(&s.Nodes, 3)
	orElse(&s.Minions, 1000)
	orElse(&s.Answering, s.Minions)
	orElse(&s.Cores, 4)
	orElse(&s.ProxyThreads, 4)
	orElse(&s.SaltMajor, 3006)
	orElse(&s.Replicas, 3)
	orElse(&s.RTT, 300*time.Microsecond)
	orElse(&s.MinionRTT, time.Millisecond)
	orElse(&s.Bandwidth, 10e9)
	orElse(&s.Share, 1)
}

// World is a site while it is simulated.
type World struct {
	Site
	*Costs
	Sim   *Sim
	nodes []*node

	proxy  *Proc // of requests
	pubs   *Proc // of subscriptions, the same unless ProxyPerPort
	herd   *Proc // nil: minions have machines of their own
	lb     card
	shared *Host
	disk   *Station // of all, on the shared machine
}

// node is a master with saltclusterd.
type node struct {
	w      *World
	id     int
	daemon *Proc
	master *Proc
	disk   *Station
	card   card

	// Traffic by kind: to and from minions, and peers.
	sent, got [kinds]int64

	inFlight int
	unread   fifo[func()]
	own      *journal
	kept     []*journal
	lines    []*copyLine
	writing  fifo[*copies] // from others, one batch at a time
	busy     bool
}

// kind is what traffic is for.
type kind int

const (
	toMinions kind = iota // publications, replies
	ofMinions             // requests
	fanout                // publications between nodes
	relayed               // requests on their way to the node they are for, and back
	copied                // jobs to their replicas
	rooted                // roots
	agreed                // consensus
	kinds
)

var kindNames = [kinds]string{"to minions", "from minions", "publications", "relayed", "job copies", "roots", "raft"}

func (w *World) returnBytes() int { return w.ReturnBytes + w.Payload }

// withBytes is what a step with a return costs, whose result may be long.
func (w *World) withBytes(d time.Duration) time.Duration {
	return d + time.Duration(float64(w.KiB)*float64(w.Payload)/1024)
}

// Needs is what one node needs for its minions when all are up, and what it needs while one node is away.
type Needs struct {
	Connections, Worst int // on each of the two ports
	Files              int // descriptors of saltclusterd, at worst
	Idle               int // bytes of saltclusterd with all nodes up, before any job
	Memory             int // the same at worst, after jobs
	ProxyConnections   int // of the load balancer: two for each minion
	ProxyFiles         int
	ProxyMemory        int // idle
	ProxyMost          int // with both buffers of every connection in use
}

// otherFiles are descriptors that do not depend on minions: listeners, peers, journals, files that are served.
const otherFiles = 1000

// Needs tells what the site needs.
func (s Site) Needs(c *Costs) Needs {
	s.fill()
	n := Needs{Connections: ceil(s.Minions, s.Nodes), Worst: ceil(s.Minions, max(1, s.Nodes-1)), ProxyConnections: 2 * s.Minions}
	n.Files = 2*n.Worst + otherFiles
	n.Idle = c.MemBase + 2*n.Connections*c.MemConn
	n.Memory = c.MemBase + 2*n.Worst*c.MemConn + s.Minions*c.MemJob
	n.ProxyFiles = 2*n.ProxyConnections + otherFiles
	n.ProxyMemory = c.MemProxyBase + n.ProxyConnections*c.MemProxy
	n.ProxyMost = n.ProxyMemory + n.ProxyConnections*c.MemProxyBusy
	return n
}

func ceil(a, b int) int { return (a + b - 1) / b }

// card is a network card. Minions have ones that are never busy.
type card struct{ up, down *Station }

func (s *Sim) newCard() card { return card{s.NewStation(), s.NewStation()} }

// NewWorld lays a site out.
func NewWorld(site Site, costs *Costs) *World {
	site.fill()
	if site.SaltMajor >= 3008 {
		newer := *costs
		newer.BusEvent, newer.AuthEvent = costs.BusEvent3008, costs.AuthEvent3008
		costs = &newer
	}
	w := &World{Site: site, Costs: costs, Sim: NewSim(site.Seed)}
	f := &w.Slower
	if site.Shared {
		w.shared = w.Sim.NewHost("lab", site.Cores)
		w.shared.share = site.Share
		w.disk = w.Sim.NewStation()
		w.herd = w.shared.NewProc("minions", 0).slower(f.Minions)
	}
	if !site.Direct {
		h := w.host("proxy", site.ProxyThreads)
		w.proxy = h.NewProc("haproxy", site.ProxyThreads).slower(f.Proxy)
		if w.pubs = w.proxy; site.ProxyPerPort {
			w.pubs = h.NewProc("haproxy-publish", site.ProxyThreads).slower(f.Proxy)
		}
	}
	w.lb = w.Sim.newCard()
	for i := range site.Nodes {
		h := w.host(fmt.Sprint("node", i), site.Cores)
		daemon := h.NewProc("saltclusterd", 0).slower(f.Others)
		if i == 0 {
			daemon.slower(f.Publisher)
		}
		n := &node{
			w: w, id: i, daemon: daemon, master: h.NewProc("salt-master", masterThreads).slower(f.Master),
			disk: w.disk, card: w.Sim.newCard(),
		}
		if n.disk == nil {
			n.disk = w.Sim.NewStation()
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// Kinds of processes whose CPU is told apart: saltclusterd of the node that publishes and of the others, all masters, the load balancer and,
// where they are on the same machine, the minions.
const (
	publisherCPU = "saltclusterd"
	othersCPU    = "saltclusterd, others"
	masterCPU    = "salt-master"
	proxyCPU     = "haproxy"
	minionsCPU   = "minions"
)

// used is what CPU everybody has used.
func (w *World) used() map[string]time.Duration {
	cpu := map[string]time.Duration{}
	for i, n := range w.nodes {
		key := publisherCPU
		if i > 0 {
			key = othersCPU
		}
		cpu[key] += n.daemon.Used
		cpu[masterCPU] += n.master.Used
	}
	if w.proxy != nil {
		if cpu[proxyCPU] = w.proxy.Used; w.pubs != w.proxy {
			cpu[proxyCPU] += w.pubs.Used
		}
	}
	if w.herd != nil {
		cpu[minionsCPU] = w.herd.Used
	}
	return cpu
}

func (w *World) host(name string, cores int) *Host {
	if w.shared != nil {
		return w.shared
	}
	return w.Sim.NewHost(name, cores)
}

// Packets on Ethernet: what a segment has besides its bytes, and how many of them it has.
const (
	segment  = 1448
	overhead = 14 + 20 + 32
)

// wire is what bytes take on an Ethernet, acks what TCP sends back for them: a packet for every second full one. The last is acknowledged by
// what is answered, where something is.
func wire(bytes int) int { return bytes + overhead*(1+(bytes-1)/segment) }
func acks(bytes int) int { return overhead * ((1 + (bytes-1)/segment) / 2) }

// move brings bytes from one card to another.
func (w *World) move(from, to card, bytes int, latency time.Duration, then func()) {
	if w.shared != nil { // a veth pair
		w.Sim.After(0, then)
		return
	}
	d := time.Duration(float64(bytes) * 8 / w.Bandwidth * 1e9)
	left := w.Sim.Now() + d
	if from.up != nil {
		left = from.up.Serve(d, nil)
	}
	if to.down == nil {
		w.Sim.At(left+latency, then)
		return
	}
	w.Sim.At(left+latency-d, func() { to.down.Serve(d, then) }) // the first of it is there while the rest is sent
}

// peer sends to another node.
func (n *node) peer(to *node, k kind, bytes int, then func()) {
	b := wire(bytes)
	n.sent[k] += int64(b)
	n.got[k] += int64(acks(bytes))
	to.got[k] += int64(b)
	to.sent[k] += int64(acks(bytes))
	n.w.move(n.card, to.card, b, n.w.RTT/2, then)
}

// outward sends a reply to a minion, through the load balancer.
func (n *node) outward(bytes int, then func()) { n.through(n.w.proxy, bytes, then) }

// broadcast sends a publication to a minion.
func (n *node) broadcast(then func()) { n.through(n.w.pubs, n.w.PubBytes, then) }

func (n *node) through(proxy *Proc, bytes int, then func()) {
	w, b := n.w, wire(bytes)
	n.sent[toMinions] += int64(b)
	n.got[toMinions] += int64(acks(bytes) + overhead) // nothing is answered to a publication, or to a reply
	if w.Direct {
		w.Sim.After(w.MinionRTT/2, then)
		return
	}
	w.move(n.card, w.lb, b, w.RTT/2, func() {
		proxy.Do(w.Proxy, func() {
			w.move(w.lb, card{}, b, w.MinionRTT/2, then)
		})
	})
}

// inward brings a minion's bytes to a node.
func (n *node) inward(bytes int, then func()) {
	w, b := n.w, wire(bytes)
	n.got[ofMinions] += int64(b)
	n.sent[ofMinions] += int64(acks(bytes))
	if w.Direct {
		w.Sim.After(w.MinionRTT/2, then)
		return
	}
	w.move(card{}, w.lb, b, w.MinionRTT/2, func() {
		w.proxy.Do(w.Proxy, func() { w.move(w.lb, n.card, b, w.RTT/2, then) })
	})
}

// minion has a minion's machine work, where that is the one that everybody shares; then may be nil.
func (w *World) minion(cost time.Duration, then func()) { w.played((*Proc).Do, cost, then) }

// onward is minion for a goroutine that another one has started: it runs before those that were woken by the network.
func (w *World) onward(cost time.Duration, then func()) { w.played((*Proc).Next, cost, then) }

func (w *World) played(do func(p *Proc, cost time.Duration, done func()), cost time.Duration, then func()) {
	switch {
	case w.herd != nil:
		do(w.herd, cost, then)
	case then != nil:
		w.Sim.After(0, then)
	}
}
