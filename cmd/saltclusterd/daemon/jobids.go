package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/saltwire"
)

// jobClash is the last case in which two masters gave one id to different jobs.
type jobClash struct {
	mu            sync.Mutex
	count         int
	jid           string
	first, second node.ID
}

// jobSeen records a publication before it leaves. Without unique_jid two masters that publish in the same microsecond make
// the same id: minions that both jobs are for run only the one they receive first.
func (s *service) jobSeen(jid string, publisher node.ID, plain []byte) {
	s.missed.Seen(jid)
	first, clash := s.jobs.Record(jid, publisher, jobContent(plain))
	if !clash {
		return
	}
	s.m.d.log.Error("two masters gave one id to different jobs: minions of both run only one of them; run what is missing again",
		"jid", jid, "node", first, "other", publisher)
	s.clash.mu.Lock()
	defer s.clash.mu.Unlock()
	s.clash.count++
	s.clash.jid, s.clash.first, s.clash.second = jid, first, publisher
}

// jobContent returns a hash of what a job is: several masters publish one job under one id where syndics pass it on. Zero: not
// readable.
func jobContent(plain []byte) uint64 {
	h := xxhash.New()
	err := saltwire.WalkMap(plain, func(key, value []byte) error {
		switch string(key) {
		case "fun", "arg", "tgt", "tgt_type":
			_, _ = h.Write(key)
			_, _ = h.Write(value)
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return max(h.Sum64(), 1)
}

// wholeJob returns the published job whose id a minion has cut in the return of a queued job; empty: the id is to stay as it is.
func (s *service) wholeJob(jid, masterID string) string {
	if !saltwire.IsCutJID(jid) {
		return ""
	}
	publisher := node.ID(masterID)
	if masterID != "" && s.ownMaster(masterID) {
		publisher = s.m.d.id
	}
	if full, ok := s.jobs.Whole(jid, publisher); ok {
		return full
	}
	if _, published := s.jobs.Lookup(jid); published || s.cache == nil {
		return ""
	}
	full, _ := s.cache.Whole(jid) // published before this process was started
	return full
}

// checkJobIDs warns of ids that two masters have given to different jobs since this process was started.
func (s *service) checkJobIDs(context.Context) health.Result {
	c := &s.clash
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return fine
	}
	return health.Result{
		Level: health.Warn,
		Reason: fmt.Sprintf("%s and %s gave the id %s to two different jobs (%s since the start): minions of both ran only one of them",
			c.first, c.second, c.jid, plural(c.count, "such id")),
		Hint: "look both up with salt-run jobs.lookup_jid on their masters and run what is missing again; 'unique_jid: True' in a file of your own " +
			"in master.d makes that very unlikely, and ids longer",
	}
}
