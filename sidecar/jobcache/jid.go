package jobcache

import (
	"crypto"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// jidLayout are the 14 digits before the microseconds.
const jidLayout = "20060102150405"

const (
	// places is how many nodes make ids that differ whatever the time. More of them share places.
	places = 64
	// maxMade is how many ids are remembered: those of the last minute, of ten thousand minions that run a schedule each minute.
	maxMade = 16384
)

// IDs makes ids for jobs that a minion has run unasked, as salt/utils/jid.py:gen_jid makes them, but that no two are the same, not even
// those of two nodes in the same microsecond. Safe for concurrent use.
type IDs struct {
	place func() int

	mu   sync.Mutex
	made []int64 // microseconds, ascending: the latest maxMade at least
}

// NewIDs returns a source. place is which of the cluster's nodes this is, in an order that all of them know; nil: there is no other.
func NewIDs(place func() int) *IDs { return &IDs{place: place} }

// Next returns an id of 20 digits, later than all before.
func (j *IDs) Next(now time.Time) string {
	step, place := int64(1), int64(0)
	if j.place != nil {
		step, place = places, int64(j.place()%places)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := int64(-1)
	if n := len(j.made); n > 0 {
		last = j.made[n-1]
	}
	at := max(now.UnixMicro(), last+1)
	if at = at - at%step + place; at <= last {
		at += step
	}
	if len(j.made) >= 2*maxMade {
		j.made = append(j.made[:0], j.made[len(j.made)-maxMade:]...)
	}
	j.made = append(j.made, at)
	return jidOf(at)
}

// Made says whether an id is one of the latest made here. A salt-master may give it to a job that it publishes.
func (j *IDs) Made(jid string) bool {
	if len(jid) != len(jidLayout)+6 {
		return false
	}
	at, err := time.Parse(jidLayout+".000000", jid[:len(jidLayout)]+"."+jid[len(jidLayout):])
	if err != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, found := slices.BinarySearch(j.made, at.UnixMicro())
	return found
}

func jidOf(micro int64) string {
	t := time.UnixMicro(micro).UTC()
	return t.Format(jidLayout) + fmt.Sprintf("%06d", t.Nanosecond()/1000)
}

// isJID is salt/utils/jid.py:is_jid. sure is false where Python's int() might see a number in what are not 20 digits.
func isJID(s string) (is, sure bool) {
	if len(s) != 20 && (len(s) <= 21 || s[20] != '_') {
		return false, isASCII(s) || len(s) < 20
	}
	for _, c := range []byte(s[:20]) {
		if c < '0' || c > '9' {
			return false, !strings.ContainsAny(s[:20], "_+- \t\n\r\v\f\x1c\x1d\x1e\x1f") && isASCII(s)
		}
	}
	return true, true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// endtime is the time as text, salt/utils/jid.py:jid_to_time(gen_jid()).
func endtime(t time.Time) string { return t.UTC().Format("2006, Jan 02 15:04:05.000000") }

// stamp is what fire_event puts into _stamp: datetime.isoformat(), which leaves a zero fraction out; 3008 names the zone.
func (c *Cache) stamp(t time.Time) string {
	layout := "2006-01-02T15:04:05.000000"
	if t = t.UTC(); t.Nanosecond()/1000 == 0 {
		layout = "2006-01-02T15:04:05"
	}
	if c.major >= 3008 {
		layout += "+00:00"
	}
	return t.Format(layout)
}

// jobPath is a job's directory within cachedir (salt/utils/jid.py:jid_dir).
func (c *Cache) jobPath(jid string) string { return jobPath(c.hash, jid) }

func jobPath(hash crypto.Hash, jid string) string {
	h := hash.New()
	h.Write([]byte(jid))
	sum := hex.EncodeToString(h.Sum(nil))
	return filepath.Join("jobs", sum[:2], sum[2:])
}
