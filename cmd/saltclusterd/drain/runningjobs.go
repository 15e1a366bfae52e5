package drain

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
	// maxRunningJobs bounds the jobs that are remembered.
	maxRunningJobs = 4096
	// jobsPoll is how often a drain checks whether they have ended.
	jobsPoll = time.Second
	// jobsRefresh is how often they are checked while nothing waits for them.
	jobsRefresh = 10 * time.Second
	// jobSlack is added to the master's own timeouts.
	jobSlack = 5 * time.Second
	// quickRefresh is what reading the progress of all jobs may take to be done for every question.
	quickRefresh = 50 * time.Millisecond
	findJob      = "saltutil.find_job"
)

// RunningJobs tracks which jobs published by the local master are still waited for. A command line that waits asks
// its minions for the job every timeout (saltutil.find_job,
// salt/client/__init__.py:LocalClient.get_cli_event_returns); a job without a question and without a return for
// that long has ended.
type RunningJobs struct {
	timeout  time.Duration
	progress func(jid string) (got, want int) // as the job cache says; want zero: unknown
	now      func() time.Time

	refreshing sync.Mutex // held while the disk is read
	refreshed  time.Time
	took       time.Duration

	mu    sync.Mutex
	byJID map[string]*list.Element
	order list.List // of *runningJob, the newest first
	ended JobCounts
}

// JobCounts are the jobs that are waited for, and the returns of those that have ended.
type JobCounts struct {
	Running            int
	Expected, Returned uint64
}

type runningJob struct {
	jid  string
	seen time.Time // published, asked for, or a return came
	got  int
	want int // zero: unknown
}

// NewRunningJobs returns RunningJobs without jobs. timeout is how long a master's command line waits before it asks
// for its job again; progress reads from the job cache how many minions have returned, and of how many.
func NewRunningJobs(timeout time.Duration, progress func(jid string) (got, want int)) *RunningJobs {
	return &RunningJobs{timeout: timeout + jobSlack, progress: progress, now: time.Now, byJID: map[string]*list.Element{}}
}

// Add records a publication of the local master.
func (j *RunningJobs) Add(p saltwire.PubPeek, plain []byte) {
	if p.Fun == findJob {
		if jid := saltwire.FirstArg(plain); jid != "" {
			j.touchJob(jid, false)
		}
		return
	}
	j.touchJob(p.JID, true)
}

// Inherit records the jobs that this node had published before an upgrade in place, the latest first. The job cache
// says which of them have ended; the others end by timeout.
func (j *RunningJobs) Inherit(jids []string) {
	for _, jid := range slices.Backward(jids[:min(len(jids), maxRunningJobs)]) {
		j.touchJob(jid, true)
	}
}

// touchJob records that a job is alive. An unknown job is added only if it was published now.
func (j *RunningJobs) touchJob(jid string, published bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.byJID[jid]; ok {
		e.Value.(*runningJob).seen = j.now()
		return
	}
	if !published {
		return
	}
	j.byJID[jid] = j.order.PushFront(&runningJob{jid: jid, seen: j.now()})
	if j.order.Len() > maxRunningJobs {
		j.removeJob(j.order.Back())
	}
}

func (j *RunningJobs) removeJob(e *list.Element) {
	job := j.order.Remove(e).(*runningJob)
	delete(j.byJID, job.jid)
	j.ended.Expected += uint64(job.want)
	j.ended.Returned += uint64(min(job.got, job.want))
}

// Counts returns what is known without reading the disk; Follow keeps it up to date.
func (j *RunningJobs) Counts() JobCounts {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.ended
	c.Running = j.order.Len()
	return c
}

// Follow checks the jobs from time to time, while the disk they are on answers, until ctx ends.
func (j *RunningJobs) Follow(ctx context.Context, diskHangs func() bool) {
	for backoff.Poll(ctx, jobsRefresh) {
		if !diskHangs() {
			j.refreshJobs()
		}
	}
}

// Running counts the jobs that lack returns and are waited for. It reads the disk without holding up publications.
func (j *RunningJobs) Running() int {
	j.refreshJobs()
	return j.Counts().Running
}

// refreshJobs reads the progress of all jobs. Where that is slow, it takes a quarter of the time at most, however often
// it is called.
func (j *RunningJobs) refreshJobs() {
	j.refreshing.Lock()
	defer j.refreshing.Unlock()
	if j.took > quickRefresh && time.Since(j.refreshed) < 3*j.took {
		return
	}
	began := time.Now()
	j.mu.Lock()
	jids := make([]string, 0, j.order.Len())
	for e := j.order.Front(); e != nil; e = e.Next() {
		jids = append(jids, e.Value.(*runningJob).jid)
	}
	j.mu.Unlock()
	for _, jid := range jids {
		got, want := j.progress(jid)
		j.updateJob(jid, got, want)
	}
	j.refreshed = time.Now()
	j.took = j.refreshed.Sub(began)
}

// updateJob records the progress of a job, and removes it if it has ended.
func (j *RunningJobs) updateJob(jid string, got, want int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.byJID[jid]
	if !ok {
		return
	}
	job, now := e.Value.(*runningJob), j.now()
	if got > job.got {
		job.got, job.seen = got, now
	}
	job.want = want
	if want > 0 && got >= want || now.Sub(job.seen) > j.timeout {
		j.removeJob(e)
	}
}
