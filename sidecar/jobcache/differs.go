package jobcache

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/saltvalue"
)

// maxCompared bounds a return that is read to be compared with another one, and what is encoded anew for that.
const maxCompared = 1 << 20

// compareReturn looks whether a minion's second return for a job is the first once more (salt/returners/local_cache.py
// _log_duplicate_return): two hosts that share an id are found so.
func (c *Cache) compareReturn(j *jobDir, job *Job) {
	dir := filepath.Join(c.cfg.CacheDir, j.path, job.Minion)
	first, err := readBounded(filepath.Join(dir, "return.p"), maxCompared)
	if err != nil {
		return // it is larger, or gone meanwhile
	}
	same := equalReturns(first, job.Return)
	if same && job.Out != nil {
		out, err := readBounded(filepath.Join(dir, "out.p"), maxCompared)
		same = err == nil && equalReturns(out, job.Out)
	}
	if !same {
		c.metrics.differed()
		c.cfg.Log.Differs(job.Minion, job.JID, outcomeOf(first), outcomeOf(job.Return))
	}
}

// equalReturns says whether two values are the same. A stock master may have encoded one of them in another way.
func equalReturns(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) > maxCompared || len(b) > maxCompared {
		return false
	}
	wireA, _, errA := saltvalue.AppendWire(nil, a)
	wireB, _, errB := saltvalue.AppendWire(nil, b)
	return errA == nil && errB == nil && bytes.Equal(wireA, wireB)
}

// outcomeOf is what a return says of itself.
func outcomeOf(raw []byte) saltlog.Outcome {
	f, ok := saltvalue.ParseFields(raw)
	if !ok {
		return saltlog.Outcome{Retcode: "None", Success: "None"}
	}
	return saltlog.Outcome{Retcode: repr(f, "retcode"), Success: repr(f, "success")}
}

// repr is Python's repr of a number or a truth value; of anything else a minion may choose the text, so it is not said.
func repr(f fields, name string) string {
	raw, ok := f.Get(name)
	if !ok {
		return "None"
	}
	switch v, _, err := msgp.ReadIntfBytes(raw); v := v.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64, uint64:
		return fmt.Sprint(v)
	case nil:
		if err == nil {
			return "None"
		}
	}
	return "?"
}
