package jobcache

import (
	"crypto"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// jidLayout are the 14 digits before the microseconds.
const jidLayout = "20060102150405"

// jidSource makes job ids as salt/utils/jid.py:gen_jid, but for one thing: no two are the same, even without
// unique_jid.
type jidSource struct {
	suffix string // Config.IDSuffix, else "_<pid>" with unique_jid
	mu     sync.Mutex
	last   int64 // microseconds
}

func (j *jidSource) nextJID(now time.Time) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = max(now.UnixMicro(), j.last+1)
	return jidOf(j.last) + j.suffix
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

// formatEndtime is the time as text, salt/utils/jid.py:jid_to_time(gen_jid()).
func formatEndtime(t time.Time) string { return t.UTC().Format("2006, Jan 02 15:04:05.000000") }

// formatStamp is what fire_event puts into _stamp: datetime.isoformat(), which leaves a zero fraction out; 3008 names
// the zone.
func (c *Cache) formatStamp(t time.Time) string {
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
