package scale

import "time"

// Proc is a process as Go runs one: goroutines wait in a line; one that has worked for long goes behind all others but
// is not forgotten, because the scheduler looks there every so often. So a goroutine that always has work gets most of
// a processor whatever else there is.
type Proc struct {
	Name string
	// Used is the CPU time used so far.
	Used time.Duration

	host    *Host
	threads int
	running int
	factor  float64
	had     time.Duration
	paused  fifo[work] // by the kernel: its thread has it still
	next    fifo[work] // was woken by what ran
	line    fifo[work]
	long    fifo[work]
	ticks   int
}

// goQuantum is how long a goroutine runs while others wait, goTurn how many run before one that was interrupted does
// again.
const (
	goQuantum = 10 * time.Millisecond
	goTurn    = 61
)

type work struct {
	left, ran time.Duration
	begun     bool
	start     func()
	marks     []mark
	done      func()
}

// mark is what happens when so much of a work is left.
type mark struct {
	left time.Duration
	do   func()
}

// NewProc adds a process; threads 0: as many as the machine has cores.
func (h *Host) NewProc(name string, threads int) *Proc {
	if threads <= 0 {
		threads = h.cores
	}
	p := &Proc{Name: name, host: h, threads: threads, factor: 1}
	h.procs = append(h.procs, p)
	return p
}

// slower has all work take so many times as long; 0 changes nothing.
func (p *Proc) slower(factor float64) *Proc {
	if factor > 0 {
		p.factor = factor
	}
	return p
}

func (p *Proc) cost(d time.Duration) time.Duration { return time.Duration(float64(d) * p.factor) }

func (p *Proc) waiting() int { return p.paused.len() + p.next.len() + p.line.len() + p.long.len() }

// pick takes what runs next.
func (p *Proc) pick() work {
	if p.paused.len() > 0 {
		return p.paused.pop()
	}
	p.ticks++
	switch {
	case p.long.len() > 0 && (p.ticks%goTurn == 0 || p.next.len()+p.line.len() == 0):
		return p.long.pop()
	case p.next.len() > 0:
		return p.next.pop()
	}
	return p.line.pop()
}

func (p *Proc) enter(line *fifo[work], w work) {
	if p.running == 0 && p.waiting() == 0 { // whoever has slept does not catch up on what it has not had
		p.had = max(p.had, p.host.least)
	}
	line.push(w)
	p.host.dispatch()
}

// Do uses CPU time and then calls done, which may be nil.
func (p *Proc) Do(cost time.Duration, done func()) { p.Timed(cost, nil, done) }

// Timed is Do; start is called when the work begins.
func (p *Proc) Timed(cost time.Duration, start, done func()) {
	p.enter(&p.line, work{left: p.cost(cost), start: start, done: done})
}

// Next is Do for a goroutine that is woken by the one that runs: it goes before those that wait.
func (p *Proc) Next(cost time.Duration, done func()) {
	p.enter(&p.next, work{left: p.cost(cost), done: done})
}

// Series is work for one goroutine that does the same n times and then continues with what comes: each is called for
// every one of them at its time, done at the end.
func (p *Proc) Series(n int, cost time.Duration, each func(i int), done func()) {
	p.enter(&p.long, p.each(n, func(int) time.Duration { return cost }, each, done))
}

// Each is Series for things that cost differently, of a goroutine that comes back from a system call which took so long
// that its processor was given to others: it waits in line.
func (p *Proc) Each(n int, cost func(i int) time.Duration, each func(i int), done func()) {
	p.enter(&p.line, p.each(n, cost, each, done))
}

func (p *Proc) each(n int, cost func(i int) time.Duration, each func(i int), done func()) work {
	at, sum := make([]time.Duration, n), time.Duration(0)
	for i := range at {
		sum += p.cost(cost(i))
		at[i] = sum
	}
	w := work{left: sum, done: done, marks: make([]mark, n)}
	for i := range at {
		w.marks[i] = mark{sum - at[i], func() { each(i) }}
	}
	return w
}

// fifo is a queue.
type fifo[T any] struct{ all []T }

func (f *fifo[T]) push(v T) { f.all = append(f.all, v) }

func (f *fifo[T]) len() int { return len(f.all) }

func (f *fifo[T]) pop() T {
	v := f.all[0]
	f.all = f.all[1:]
	return v
}
