package router

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
)

// DefaultJobs is how many jobs a Jobs remembers unless told otherwise; one takes about 250 bytes.
const DefaultJobs = 65536

// Jobs remembers which node published which job, the latest ones. Safe for concurrent use.
type Jobs struct {
	max int

	mu    sync.Mutex
	byJID map[string]*list.Element
	order *list.List          // of job, the latest first
	cut   map[string][]string // job ids by what minions that queue jobs make of them (saltwire.CutJID)
}

type job struct {
	jid  string
	node node.ID
	seen time.Time
	// content tells two jobs with one id from one that several masters publish (syndics do); zero: not known.
	content uint64
	other   node.ID   // who published another job under the same id; empty: no node has
	also    []node.ID // who published the same job after node
}

func (is job) isOf(publisher node.ID) bool {
	return is.node == publisher || slices.Contains(is.also, publisher)
}

// NewJobs returns a table for limit jobs; zero or below: DefaultJobs.
func NewJobs(limit int) *Jobs {
	if limit <= 0 {
		limit = DefaultJobs
	}
	return &Jobs{max: limit, byJID: map[string]*list.Element{}, order: list.New(), cut: map[string][]string{}}
}

// Record notes a publisher of a job and a hash of what it is about, zero when that is not known. The first publisher
// named stays. Where this one has published another job under the same id, first names it, once.
func (j *Jobs) Record(jid string, publisher node.ID, content uint64) (first node.ID, clash bool) {
	if jid == "" || jid == noJob {
		return "", false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.byJID[jid]; ok {
		j.order.MoveToFront(e)
		is := e.Value.(job)
		if is.node == publisher || content == 0 || is.content == 0 || is.other != "" && content != is.content {
			return "", false
		}
		clash = content != is.content
		if clash {
			is.other = publisher
		} else if !slices.Contains(is.also, publisher) {
			is.also = append(is.also, publisher)
		}
		e.Value = is
		return is.node, clash
	}
	j.byJID[jid] = j.order.PushFront(job{jid: jid, node: publisher, seen: time.Now(), content: content})
	if cut, ok := saltwire.CutJID(jid); ok {
		j.cut[cut] = append(j.cut[cut], jid)
	}
	if j.order.Len() > j.max {
		j.forgetJob(j.order.Remove(j.order.Back()).(job).jid)
	}
	return "", false
}

// forgetJob wants mu.
func (j *Jobs) forgetJob(jid string) {
	delete(j.byJID, jid)
	cut, ok := saltwire.CutJID(jid)
	if !ok {
		return
	}
	if j.cut[cut] = slices.DeleteFunc(j.cut[cut], func(o string) bool { return o == jid }); len(j.cut[cut]) == 0 {
		delete(j.cut, cut)
	}
}

// Contested says whether two nodes have published different jobs under one id.
func (j *Jobs) Contested(jid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.byJID[jid]
	return ok && e.Value.(job).other != ""
}

// Whole returns the one published job whose id a minion has cut (saltwire.CutJID), of publisher where that is known.
// False: there is none, or several, or the id itself is that of a job.
func (j *Jobs) Whole(cut string, publisher node.ID) (jid string, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, whole := j.byJID[cut]; whole {
		return "", false
	}
	for _, full := range j.cut[cut] {
		if is := j.byJID[full].Value.(job); publisher != "" && !is.isOf(publisher) {
			continue
		}
		if jid != "" {
			return "", false
		}
		jid = full
	}
	return jid, jid != ""
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

// Several returns the nodes that have published a job, nil unless there are several: syndics have the masters of their
// nodes publish the same job.
func (j *Jobs) Several(jid string) []node.ID {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.byJID[jid]
	if !ok || len(e.Value.(job).also) == 0 {
		return nil
	}
	return append([]node.ID{e.Value.(job).node}, e.Value.(job).also...)
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
