package router

import (
	"container/list"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// DefaultJobs is how many jobs a Jobs remembers unless told otherwise; one takes about 250 bytes.
const DefaultJobs = 65536

// Jobs remembers which node published which job, the latest ones. Safe for concurrent use.
type Jobs struct {
	max int

	mu    sync.Mutex
	byJID map[string]*list.Element
	order *list.List // of job, the latest first
}

type job struct {
	jid  string
	node node.ID
	seen time.Time
}

// NewJobs returns a table for max jobs; zero or below: DefaultJobs.
func NewJobs(max int) *Jobs {
	if max <= 0 {
		max = DefaultJobs
	}
	return &Jobs{max: max, byJID: map[string]*list.Element{}, order: list.New()}
}

// Record notes the publisher of a job. The first one named stays: only one master publishes a jid.
func (j *Jobs) Record(jid string, publisher node.ID) {
	if jid == "" || jid == noJob {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.byJID[jid]; ok {
		j.order.MoveToFront(e)
		return
	}
	j.byJID[jid] = j.order.PushFront(job{jid, publisher, time.Now()})
	if j.order.Len() > j.max {
		oldest := j.order.Back()
		delete(j.byJID, j.order.Remove(oldest).(job).jid)
	}
}

// Lookup names the publisher of a job.
func (j *Jobs) Lookup(jid string) (node.ID, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.byJID[jid]
	if !ok {
		return "", false
	}
	j.order.MoveToFront(e)
	return e.Value.(job).node, true
}

// Seen tells when a job was first recorded.
func (j *Jobs) Seen(jid string) (time.Time, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.byJID[jid]
	if !ok {
		return time.Time{}, false
	}
	return e.Value.(job).seen, true
}

// Len counts the jobs remembered.
func (j *Jobs) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.order.Len()
}

// Latest returns up to n jobs and their publishers, the latest first.
func (j *Jobs) Latest(n int) (jids []string, publishers []node.ID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := j.order.Front(); e != nil && len(jids) < n; e = e.Next() {
		jids, publishers = append(jids, e.Value.(job).jid), append(publishers, e.Value.(job).node)
	}
	return jids, publishers
}
