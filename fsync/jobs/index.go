package jobs

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// maxJobs bounds the jobs that are known; a stock master with the default keep_jobs seldom has a tenth of it.
const maxJobs = 500_000

// maxGone bounds the jobs remembered for having been removed; beyond that the oldest is forgotten. Its age alone keeps
// it away.
const maxGone = 65_536

// job is what is known of a job on disk.
type job struct {
	jid   string
	at    int64  // time of its file jid
	dir   int64  // time of its directory at the last look
	sum   uint64 // of its items then
	names int32  // returns then
	stale bool   // something was written since
	own   bool   // what changes in it is told at once
	there bool   // it has been on disk
	turn  uint32 // the scan that saw it last
}

// index is what is known of all jobs. It locks itself.
type index struct {
	disk disk
	now  func() time.Time

	mu       sync.Mutex // guards what follows
	keep     time.Duration
	jobs     map[string]*job
	places   map[uint64]*job     // by directory
	whole    map[string][]string // job ids by what is left of them without a suffix (cutID)
	gone     map[string]struct{}
	goneList []string // in order
	goneNext int
	overflow int
	past     map[string]int64 // jobs before the start, until the first scan has seen what there is
	pastKeep time.Duration    // how long the master kept jobs then
	changed  func()           // is called when the table is to be saved
}

func newIndex(d disk, keep time.Duration, now func() time.Time, changed func()) *index {
	return &index{
		disk: d, keep: keep, now: now, changed: changed,
		jobs: map[string]*job{}, places: map[uint64]*job{}, gone: map[string]struct{}{},
		whole: map[string][]string{},
	}
}

func placeKey(top, name string) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(top)
	_, _ = h.WriteString(name)
	return h.Sum64()
}

// cutID is a job id up to the "_" that unique_jid appends a process id with; false: it has none.
func cutID(jid string) (string, bool) {
	cut, _, ok := strings.Cut(jid, "_")
	return cut, ok
}

// Whole returns the one job on disk whose id begins with cut and "_"; false: there is none, or several, or a job of
// that very id.
func (s *Store) Whole(cut string) (jid string, ok bool) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if full := x.whole[cut]; x.jobs[cut] == nil && len(full) == 1 {
		return full[0], true
	}
	return "", false
}

// add returns what is known of a job, making it known. It is nil when there are too many. x.mu is held.
func (x *index) add(jid string) *job {
	if j := x.jobs[jid]; j != nil {
		return j
	}
	if len(x.jobs) >= maxJobs {
		x.overflow++
		return nil
	}
	j := &job{jid: jid, stale: true}
	x.jobs[jid] = j
	delete(x.past, jid)
	if cut, ok := cutID(jid); ok {
		x.whole[cut] = append(x.whole[cut], jid)
	}
	x.places[placeKey(x.disk.place(jid))] = j
	return j
}

// drop forgets a job whose directory is gone. When the master's cleaning explains that, it must not come back. x.mu is
// held.
func (x *index) drop(j *job) {
	delete(x.jobs, j.jid)
	if cut, ok := cutID(j.jid); ok {
		x.whole[cut] = slices.DeleteFunc(x.whole[cut], func(jid string) bool { return jid == j.jid })
		if len(x.whole[cut]) == 0 {
			delete(x.whole, cut)
		}
	}
	delete(x.places, placeKey(x.disk.place(j.jid)))
	if !j.there {
		return
	}
	x.changed()
	if x.nearlyOver(j.at) {
		x.markRemoved(j.jid)
	}
}

// markRemoved remembers a job that must not come back. x.mu is held.
func (x *index) markRemoved(jid string) {
	if _, ok := x.gone[jid]; !ok {
		x.remember(jid)
		x.changed()
	}
}

// remember is markRemoved of a job that is not remembered yet. x.mu is held.
func (x *index) remember(jid string) {
	x.gone[jid] = struct{}{}
	if len(x.goneList) < maxGone {
		x.goneList = append(x.goneList, jid)
		return
	}
	delete(x.gone, x.goneList[x.goneNext])
	x.goneList[x.goneNext] = jid
	x.goneNext = (x.goneNext + 1) % maxGone
}

// nearlyOver says whether a job of that time is as good as removed: it is not worth writing any more.
func (x *index) nearlyOver(at int64) bool { return x.overBy(x.keep, at) }

func (x *index) overBy(keep time.Duration, at int64) bool {
	return keep > 0 && x.now().Sub(time.Unix(0, at)) > keep*9/10
}

// note takes in what a look found, and says whether that is news. x.mu is held.
func (x *index) note(j *job, s sight) (news bool) {
	sum := sumOf(s.items)
	if !j.there {
		x.changed()
	}
	news = !j.there || sum != j.sum
	j.at, j.dir, j.sum, j.names, j.there = s.at, s.dir, sum, int32(s.returns()), true
	j.stale = s.half // a return may come without the directory's time telling
	return news
}

// fresh looks at a job where that is needed, and returns what is known; false: there is none.
func (x *index) fresh(jid string) (job, bool) {
	x.mu.Lock()
	j := x.jobs[jid]
	if j != nil && !j.stale {
		defer x.mu.Unlock()
		return *j, true
	}
	x.mu.Unlock()
	s, err := x.disk.look(jid)
	x.mu.Lock()
	defer x.mu.Unlock()
	if j = x.jobs[jid]; err != nil {
		if j != nil && gone(err) && j.there {
			x.drop(j)
		}
		return job{}, false
	}
	if j = x.add(jid); j == nil {
		return job{}, false
	}
	x.note(j, s)
	return *j, true
}

// saw makes a job be looked at anew when a look in passing has found something else in it: files that were damaged,
// say, of which no directory's time tells.
func (x *index) saw(jid string, s sight) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[jid]; j != nil && j.sum != sumOf(s.items) {
		j.stale = true
	}
}

// touched notes that something was written to a job: by this node's own, or what came from others.
func (x *index) touched(jid string, at int64, own bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	j := x.add(jid)
	if j == nil {
		return
	}
	j.stale, j.own, j.at = true, j.own || own, max(j.at, at)
}

// arrived notes that a job of others is on disk now.
func (x *index) arrived(jid string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[jid]; j != nil && !j.there {
		j.there = true
		x.changed()
	}
}

// refuses says why a record of a job is not written here; empty when it may be.
func (x *index) refuses(jid string, at int64, missing bool) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[jid]; missing && j != nil && j.there {
		x.drop(j)
	}
	if missing {
		x.removedSince(jid)
	}
	_, removed := x.gone[jid]
	switch {
	case x.jobs[jid] == nil && len(x.jobs) >= maxJobs:
		return outcomeFull
	case !missing:
		return ""
	case removed:
		return outcomeRemoved
	case x.nearlyOver(at):
		return outcomeOld
	}
	return ""
}
