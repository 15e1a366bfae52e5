package scale

import "time"

// As fsync/roots has them.
const (
	rootsQuiet   = 150 * time.Millisecond
	rootsBrief   = 30 * time.Millisecond // after a few hints only
	fetchWorkers = 4
	fetchBytes   = 8 << 20
	fetchMost    = 512
	wholeFile    = 1 << 20
	servedAtOnce = 6
	rootsStall   = 15 * time.Second
	entryBytes   = 70 // of a file in its directory's object

	flushFiles     = 16 // no more than these are on the disk before a switch
	flushTreeBytes = 16 << 20
	slices16       = 16 // parts in which a batch flows through card and processors
)

// Tree is what is rolled out.
type Tree struct {
	Files  int
	Bytes  int64
	Rename bool // it comes to its place by one rename, not file by file
	Beside int  // files that are there already, and stay as they are
}

func (t Tree) pieces() int {
	each := t.Bytes / int64(max(t.Files, 1))
	return t.Files * int(max(1, (each+wholeFile-1)/wholeFile))
}

// Rollout is what became of a new tree, from its last edit on.
type Rollout struct {
	Decided   time.Duration
	First     time.Duration // another node has it
	Last      time.Duration // all have
	Stalled   int           // requests given up, for the peer sent nothing for 15 s
	AuthorOut int64         // bytes that the author has sent
	CPU       map[string]time.Duration
	Steps     uint64
}

// rollout is one under way.
type rollout struct {
	w      *World
	tree   Tree
	author *node
	has    []bool // by node
	served []int  // requests that are answered now
	line   []fifo[func()]
	out    Rollout
	left   int
}

// Rollout edits a tree on the first node and waits until all have it.
func (w *World) Rollout(t Tree) Rollout {
	o := &rollout{w: w, tree: t, author: w.nodes[0], has: make([]bool, w.Nodes), served: make([]int, w.Nodes), line: make([]fifo[func()], w.Nodes), left: w.Nodes - 1}
	o.has[0] = true
	r := w.newRaft(400)
	heard := make([]bool, w.Nodes)
	r.applied = func(n *node, _ int) {
		if n != o.author && !heard[n.id] {
			heard[n.id] = true
			o.names(n)
		}
	}
	quiet := rootsQuiet
	if t.Rename {
		quiet = rootsBrief
	}
	w.Sim.After(quiet, func() {
		o.scan(func() {
			o.author.disk.Serve(2*w.Fsync, func() {
				r.propose(o.author, 1, true, func() { o.out.Decided = w.Sim.Now() })
			})
		})
	})
	w.Sim.Run(24 * time.Hour)
	o.out.Steps = w.Sim.Steps()
	o.out.AuthorOut = o.author.sent[rooted]
	o.out.CPU = map[string]time.Duration{}
	for i, n := range w.nodes {
		key := "author"
		if i > 0 {
			key = "others"
		}
		o.out.CPU[key] += n.daemon.Used
	}
	return o.out
}

// scan reads and hashes what is new, with a worker per processor.
func (o *rollout) scan(then func()) {
	w := o.w
	all := time.Duration(o.tree.Files)*w.ScanFile + time.Duration(o.tree.Beside)*w.WalkFile + scaled(w.ScanMiB, int(o.tree.Bytes))
	workers := min(w.Cores, 4)
	left := workers
	for range workers {
		o.author.daemon.Do(all/time.Duration(workers), func() {
			if left--; left == 0 {
				then()
			}
		})
	}
}

// names gets the objects of the tree, level by level, and then what is missing.
func (o *rollout) names(n *node) {
	w := o.w
	bytes := o.tree.Files * entryBytes
	level := func(bytes int, then func()) {
		n.daemon.Do(w.RelayOut, func() {
			n.peer(o.author, rooted, w.RelayBytes, func() {
				o.author.daemon.Do(w.RelayIn+scaled(w.ServeMiB, bytes), func() {
					o.author.peer(n, rooted, w.RelayBytes+bytes, func() { n.daemon.Do(w.RelayBack+scaled(w.StageMiB, bytes), then) })
				})
			})
		})
	}
	level(100, func() { level(1000, func() { level(bytes, func() { o.fetch(n) }) }) })
}

// fetch is Store.fetchOnce with the peers that have the tree when a worker begins; a peer that does not says so at once.
func (o *rollout) fetch(n *node) {
	f := &fetching{o: o, n: n, left: o.tree.pieces()}
	peers := []*node{o.author}
	for i := 1; i < o.w.Nodes; i++ {
		if p := o.w.nodes[(n.id+i)%o.w.Nodes]; p != o.author && p != n {
			peers = append(peers, p)
		}
	}
	workers := fetchWorkers
	if f.left <= 2*fetchMost {
		workers, peers = 2, peers[:1]
	}
	for k := range workers {
		if p := peers[k%len(peers)]; o.has[p.id] {
			f.workers++
			f.drain(p)
		}
	}
}

// fetching is what a node gets.
type fetching struct {
	o       *rollout
	n       *node
	left    int // pieces not asked for
	workers int
}

// drain asks one peer batch by batch.
func (f *fetching) drain(p *node) {
	o, w := f.o, f.o.w
	each := int(o.tree.Bytes / int64(max(o.tree.pieces(), 1)))
	n := min(f.left, fetchMost, max(1, fetchBytes/max(each, 1)))
	if n == 0 {
		if f.workers--; f.workers == 0 {
			o.finish(f.n)
		}
		return
	}
	f.left -= n
	asked := w.Sim.Now()
	f.n.daemon.Do(w.RelayOut, func() {
		f.n.peer(p, rooted, w.RelayBytes+n*32, func() {
			o.enter(p, func(leave func()) {
				if w.Sim.Now()-asked > rootsStall {
					o.out.Stalled++
					leave()
					f.left += n
					f.drain(p)
					return
				}
				o.stream(p, f.n, n, each, leave, func() { f.drain(p) })
			})
		})
	})
}

// enter waits until a peer answers no more than six others.
func (o *rollout) enter(p *node, serve func(leave func())) {
	if o.served[p.id] >= servedAtOnce {
		o.line[p.id].push(func() { o.enter(p, serve) })
		return
	}
	o.served[p.id]++
	serve(func() {
		o.served[p.id]--
		if o.line[p.id].len() > 0 {
			o.line[p.id].pop()()
		}
	})
}

// stream brings n pieces from a peer: read, hashed and sent there, received, hashed and written here.
func (o *rollout) stream(p, to *node, n, each int, leave, then func()) {
	w := o.w
	parts := min(n, slices16)
	if n == 1 && each > 64<<10 {
		parts = 4
	}
	share := func(total int, i int) int { return total*(i+1)/parts - total*i/parts }
	arrived := 0
	for i := range parts {
		files, bytes := share(n, i), share(n*each, i)
		p.daemon.Do(time.Duration(files)*w.ServeFile+scaled(w.ServeMiB, bytes), func() {
			if i == parts-1 {
				leave()
			}
			p.peer(to, rooted, bytes+files*60, func() {
				to.daemon.Do(time.Duration(files)*w.StageFile+scaled(w.StageMiB, bytes), func() {
					if arrived++; arrived == parts {
						then()
					}
				})
			})
		})
	}
}

// finish switches to what was staged. Little is on the disk before, and much after that.
func (o *rollout) finish(n *node) {
	w := o.w
	before, after := w.Fsync+time.Duration(o.tree.Files)*w.SyncFile+scaled(w.DiskMiB, int(o.tree.Bytes)), time.Duration(0)
	if o.tree.Files > flushFiles || o.tree.Bytes > flushTreeBytes {
		before, after = 0, before
	}
	n.disk.Serve(before, func() {
		n.disk.Serve(2*w.Fsync, func() {
			n.daemon.Series(1, time.Duration(o.tree.Files)*w.SwitchFile, func(int) {}, func() {
				o.has[n.id] = true // that it is to outlast a power failure nobody waits for
				n.disk.Serve(after, nil)
				if o.left == w.Nodes-1 {
					o.out.First = w.Sim.Now()
				}
				if o.left--; o.left == 0 {
					o.out.Last = w.Sim.Now()
				}
				n.daemon.Series(1, time.Duration(o.tree.Beside)*w.WalkFile, func(int) {}, nil)
			})
		})
	})
}
