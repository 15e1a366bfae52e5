package late

import (
	"bytes"
	"slices"

	"saltclusterd/sidecar/saltwire"
)

// Functions that stop jobs which are named in their arguments, and those that stop all (salt/modules/saltutil.py). They
// look for processes: a job that a minion gets together with one of them may not have begun yet, and would run though
// its user has stopped it.
var (
	stopsNamed = [][]byte{[]byte("saltutil.kill_job"), []byte("saltutil.term_job"), []byte("saltutil.signal_job")}
	stopsAll   = [][]byte{[]byte("saltutil.kill_all_jobs"), []byte("saltutil.term_all_jobs")}
)

// Stops is what a publication stops.
type Stops struct {
	all   bool   // whatever was published before
	named []byte // the jobs whose ids stand in it
}

// Stop reports whether a job is stopped, if it was published before.
func (s Stops) Stop(jid string) bool { return s.all || s.stopNamed(jid) }

func (s Stops) stopNamed(jid string) bool { return jid != "" && bytes.Contains(s.named, []byte(jid)) }

// StopsOf reads the load of a publication, or of its job.
func StopsOf(plain []byte) (s Stops) {
	var fun, arg []byte
	_ = saltwire.WalkMap(plain, func(key, value []byte) error { // a load that is none stops nothing
		switch string(key) {
		case "fun":
			fun = value
		case "arg":
			arg = value
		}
		return nil
	})
	is := func(name []byte) bool { return bytes.Contains(fun, name) }
	if s.all = slices.ContainsFunc(stopsAll, is); slices.ContainsFunc(stopsNamed, is) {
		s.named = arg
	}
	return s
}

// IsStopped reports whether a job that p belongs to was stopped since p was published, on whichever minions.
func (m *Memory) IsStopped(p Publication) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.all, func(by Publication) bool {
		return by.stops.all && by.At.After(p.At) || by.stops.stopNamed(p.JID)
	})
}
