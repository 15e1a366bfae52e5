package daemon

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/saltwire"
)

const (
	// maxWatchedJobs bounds the jobs that are remembered for a drain.
	maxWatchedJobs = 4096
	// jobsEvery is how often a drain looks whether they are done.
	jobsEvery = time.Second
	// jobsLookEvery is how often one looks that nobody waits for.
	jobsLookEvery = 10 * time.Second
	// jobSlack is added to the master's own timeouts.
	jobSlack = 5 * time.Second
	findJob  = "saltutil.find_job"
)

// jobWatch knows which jobs the local master has published that somebody still waits for. A command line that waits asks
// its minions for the job every timeout (saltutil.find_job, salt/client/__init__.py:LocalClient.get_cli_event_returns); a
// job nobody has asked for that long, and of which no return came, is nobody's any more.
type jobWatch struct {
	patience time.Duration
	returned func(jid string) (got, want int) // as the job cache says; want zero: unknown
	now      func() time.Time

	looking sync.Mutex // held while the disk is looked at
	looked  time.Time
	took    time.Duration

	mu    sync.Mutex
	byJID map[string]*list.Element
	order list.List // of *watchedJob, the newest first
	ended jobCounts
}

// jobCounts are the jobs that somebody waits for, and the returns of those that have ended.
type jobCounts struct {
	running            int
	expected, returned uint64
}

type watchedJob struct {
	jid   string
	heard time.Time // published, asked for, or a return came
	got   int
	want  int // zero: unknown
}

func newJobWatch(patience time.Duration, returned func(string) (int, int)) *jobWatch {
	return &jobWatch{patience: patience + jobSlack, returned: returned, now: time.Now, byJID: map[string]*list.Element{}}
}

// note takes a publication of the local master.
func (w *jobWatch) note(p saltwire.PubPeek, plain []byte) {
	if p.Fun == findJob {
		if jid := saltwire.FirstArg(plain); jid != "" {
			w.heardOf(jid, false)
		}
		return
	}
	w.heardOf(p.JID, true)
}

// heardOf notes a sign of a job's life; an unknown one counts only when it is new.
func (w *jobWatch) heardOf(jid string, published bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.byJID[jid]; ok {
		e.Value.(*watchedJob).heard = w.now()
		return
	}
	if !published {
		return
	}
	w.byJID[jid] = w.order.PushFront(&watchedJob{jid: jid, heard: w.now()})
	if w.order.Len() > maxWatchedJobs {
		w.forget(w.order.Back())
	}
}

// inherit notes the jobs that this node had published before an upgrade in place, the latest first. Which of them are over
// the job cache says; nobody asks for the others any more when patience has run out.
func (w *jobWatch) inherit(jids []string) {
	for _, jid := range slices.Backward(jids[:min(len(jids), maxWatchedJobs)]) {
		w.heardOf(jid, true)
	}
}

func (w *jobWatch) forget(e *list.Element) {
	j := w.order.Remove(e).(*watchedJob)
	delete(w.byJID, j.jid)
	w.ended.expected += uint64(j.want)
	w.ended.returned += uint64(min(j.got, j.want))
}

// counts tells what is known without a look at the disk; watch sees to that.
func (w *jobWatch) counts() jobCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.ended
	c.running = w.order.Len()
	return c
}

// watch looks at the jobs now and then, while the disk they are on answers, until ctx ends.
func (w *jobWatch) watch(ctx context.Context, hangs func() bool) {
	for backoff.Sleep(ctx, jobsLookEvery) {
		if !hangs() {
			w.lookAtAll()
		}
	}
}

// running counts the jobs that have not all their returns and that somebody waits for. It looks at the disk, without
// holding up publications.
func (w *jobWatch) running() int {
	w.lookAtAll()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.order.Len()
}

// quickLook is what a look at all jobs may take to be had whenever somebody asks.
const quickLook = 50 * time.Millisecond

// lookAtAll looks at the disk. Where that takes long it is done a quarter of the time at most, whoever asks.
func (w *jobWatch) lookAtAll() {
	w.looking.Lock()
	defer w.looking.Unlock()
	if w.took > quickLook && time.Since(w.looked) < 3*w.took {
		return
	}
	began := time.Now()
	w.mu.Lock()
	jids := make([]string, 0, w.order.Len())
	for e := w.order.Front(); e != nil; e = e.Next() {
		jids = append(jids, e.Value.(*watchedJob).jid)
	}
	w.mu.Unlock()
	for _, jid := range jids {
		got, want := w.returned(jid)
		w.look(jid, got, want)
	}
	w.looked = time.Now()
	w.took = w.looked.Sub(began)
}

// look takes in what the job cache says of a job.
func (w *jobWatch) look(jid string, got, want int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.byJID[jid]
	if !ok {
		return
	}
	j, now := e.Value.(*watchedJob), w.now()
	if got > j.got {
		j.got, j.heard = got, now
	}
	j.want = want
	if want > 0 && got >= want || now.Sub(j.heard) > w.patience {
		w.forget(e)
	}
}
