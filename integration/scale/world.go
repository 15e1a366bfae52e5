package scale

import (
	"cmp"
	"fmt"
	"time"
)

// Site says what is simulated. Zero values take the defaults named.
type Site struct {
	Nodes, Minions int
	Cores          int // of each node (4)
	ProxyThreads   int // of the load balancer (4)
	SaltMajor      int // of the masters: what their bus costs differs (3006)
	Replicas       int // cluster_job_replicas (3)
	Payload        int // bytes of a return beyond those of test.ping

	RTT       time.Duration // between nodes (300 µs), and from the load balancer
	MinionRTT time.Duration // between minions and the load balancer (1 ms)
	Bandwidth float64       // of each network card, bits per second and direction (10 Gbit)
	Think     [2]time.Duration

	// Slower says how much slower than in the table of costs the processes of a kind are: what a calibration has found.
	Slower Factors
	Seed   uint64
}

// Factors are of CPU, by process; 0: 1.
type Factors struct{ Publisher, Others float64 }

// masterThreads is how many processes of a master work at a time at most.
const masterThreads = 5

func (s *Site) fill() {
	s.Nodes = cmp.Or(s.Nodes, 3)
	s.Minions = cmp.Or(s.Minions, 1000)
	s.Cores = cmp.Or(s.Cores, 4)
	s.ProxyThreads = cmp.Or(s.ProxyThreads, 4)
	s.SaltMajor = cmp.Or(s.SaltMajor, 3006)
	s.Replicas = cmp.Or(s.Replicas, 3)
	s.RTT = cmp.Or(s.RTT, 300*time.Microsecond)
	s.MinionRTT = cmp.Or(s.MinionRTT, time.Millisecond)
	s.Bandwidth = cmp.Or(s.Bandwidth, 10e9)
}

// World is a site while it is simulated.
type World struct {
	Site
	*Costs
	Sim   *Sim
	nodes []*node

	proxy *Proc
	lb    card
}

// node is a master with saltclusterd.
type node struct {
	w      *World
	id     int
	daemon *Proc
	master *Proc
	disk   *Station
	card   card

	sent, got int64 // over its card

	inFlight int
	unread   fifo[func()]
	own      *journal
	kept     *journal
	lines    []*copyLine
	writing  fifo[*copies] // from others, one batch at a time
	busy     bool
}

func (w *World) returnBytes() int { return w.ReturnBytes + w.Payload }

// withBytes is what a step with a return costs, whose result may be long.
func (w *World) withBytes(d time.Duration) time.Duration {
	return d + time.Duration(float64(w.KiB)*float64(w.Payload)/1024)
}

// Needs is what one node needs for its minions when all are up, and what it needs while one node is away.
type Needs struct {
	Connections, Worst int // on each of the two ports
	Files              int // descriptors of saltclusterd, at worst
	Memory             int // the same at worst, after jobs
	ProxyConnections   int // of the load balancer: two for each minion
	ProxyFiles         int
	ProxyMemory        int // idle
}

// otherFiles are descriptors that do not depend on minions: listeners, peers, journals, files that are served.
const otherFiles = 1000

// Needs tells what the site needs.
func (s Site) Needs(c *Costs) Needs {
	s.fill()
	n := Needs{Connections: ceil(s.Minions, s.Nodes), Worst: ceil(s.Minions, max(1, s.Nodes-1)),
		ProxyConnections: 2 * s.Minions}
	n.Files = 2*n.Worst + otherFiles
	n.Memory = c.MemBase + 2*n.Worst*c.MemConn + s.Minions*c.MemJob
	n.ProxyFiles = 2*n.ProxyConnections + otherFiles
	n.ProxyMemory = c.MemProxyBase + n.ProxyConnections*c.MemProxy
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
	w.proxy = w.Sim.NewHost("proxy", site.ProxyThreads).NewProc("haproxy", site.ProxyThreads)
	w.lb = w.Sim.newCard()
	for i := range site.Nodes {
		h := w.Sim.NewHost(fmt.Sprint("node", i), site.Cores)
		daemon := h.NewProc("saltclusterd", 0).slower(w.Slower.Others)
		if i == 0 {
			daemon.slower(w.Slower.Publisher)
		}
		w.nodes = append(w.nodes, &node{
			w: w, id: i, daemon: daemon, master: h.NewProc("salt-master", masterThreads), disk: w.Sim.NewStation(),
			card: w.Sim.newCard(),
		})
	}
	return w
}

// Kinds of processes whose CPU is told apart: saltclusterd of the node that publishes and of the others, all masters,
// the load balancer.
const (
	publisherCPU = "saltclusterd"
	othersCPU    = "saltclusterd, others"
	masterCPU    = "salt-master"
	proxyCPU     = "haproxy"
)

// used is the CPU time that the processes of each kind have used.
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
	cpu[proxyCPU] = w.proxy.Used
	return cpu
}

// Packets on Ethernet: what a segment has besides its bytes, and how many of them it has.
const (
	segment  = 1448
	overhead = 14 + 20 + 32
)

// wire is what bytes take on an Ethernet, acks what TCP sends back for them: a packet for every second full one. The
// last is acknowledged by what is answered, where something is.
func wire(bytes int) int { return bytes + overhead*(1+(bytes-1)/segment) }
func acks(bytes int) int { return overhead * ((1 + (bytes-1)/segment) / 2) }

// move brings bytes from one card to another.
func (w *World) move(from, to card, bytes int, latency time.Duration, then func()) {
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
func (n *node) peer(to *node, bytes int, then func()) {
	b := wire(bytes)
	n.sent += int64(b)
	n.got += int64(acks(bytes))
	to.got += int64(b)
	to.sent += int64(acks(bytes))
	n.w.move(n.card, to.card, b, n.w.RTT/2, then)
}

// outward sends a publication or a reply to a minion, through the load balancer.
func (n *node) outward(bytes int, then func()) {
	w, b := n.w, wire(bytes)
	n.sent += int64(b)
	n.got += int64(acks(bytes) + overhead) // nothing is answered to a publication, or to a reply
	w.move(n.card, w.lb, b, w.RTT/2, func() {
		w.proxy.Do(w.Proxy, func() { w.move(w.lb, card{}, b, w.MinionRTT/2, then) })
	})
}

// inward brings a minion's bytes to a node.
func (n *node) inward(bytes int, then func()) {
	w, b := n.w, wire(bytes)
	n.got += int64(b)
	n.sent += int64(acks(bytes))
	w.move(card{}, w.lb, b, w.MinionRTT/2, func() {
		w.proxy.Do(w.Proxy, func() { w.move(w.lb, n.card, b, w.RTT/2, then) })
	})
}
