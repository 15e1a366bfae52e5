package returns

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/once"
	"saltclusterd/sidecar/spool"
)

// answered is what a master answers to a return that it takes: None.
var answered = []byte{0xc0}

// Take takes a return of this node's own: done gets what the master would answer when the return is on disk. Errors:
// ErrPython, ErrMalformed, and the journal's. done is called once, from this goroutine or the journal's, where it must
// not block.
func (s *Service) Take(r Request, done func(reply []byte, err error)) {
	key := s.window.Key(r.Minion, r.Load)
	if !s.window.Claim(key, func(err error) { s.same(err, done) }) {
		return
	}
	rec, plan, err := s.planReturn(r)
	if err != nil {
		s.window.Settle(key, err)
		s.metrics.countFailed(err)
		done(nil, err)
		return
	}
	reply := plan.Reply // what waits for the disk does not hold the plan
	s.appendClaimed(s.own, key, rec, "taken", func(err error) {
		if err != nil {
			s.metrics.countFailed(err)
			reply = nil
		}
		done(reply, err)
	})
}

// same answers a load that has come twice.
func (s *Service) same(err error, done func([]byte, error)) {
	if err != nil {
		s.metrics.countFailed(err)
		done(nil, err)
		return
	}
	s.metrics.count("duplicate")
	done(answered, nil)
}

// planReturn decides what a return makes, and gives it a job id where it has none.
func (s *Service) planReturn(r Request) (spool.Record, jobcache.Plan, error) {
	rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, From: string(r.From), Load: r.Load}
	mode := s.mode.Load()
	if ok, _ := mode.isNative(r.Cmd); !ok {
		return rec, jobcache.Plan{}, ErrPython
	}
	facts := jobcache.Facts{Received: r.Received, JID: cmp.Or(mode.Cache.Assign(r.JID, r.Received), r.JID)}
	plan, err := mode.Cache.Plan(r.Load, facts)
	python, deferred := errors.AsType[*jobcache.NeedsPython](err)
	switch {
	case deferred:
		s.c.Logger.Debug("return left to the salt-master", "minion", r.Minion, "jid", r.JID, "reason", python.Reason)
		return rec, plan, ErrPython
	case err != nil:
		return rec, plan, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	rec.JID = facts.JID
	if plan.Size <= attached*len(r.Load)+1<<10 {
		rec.Attachment = &plan
	}
	return rec, plan, nil
}

// attached is how many times its load a plan may be, to be kept with the record until the consumers have come to it.
// The journal counts the loads only. A larger one is made again.
const attached = 8

// planAgain is the plan of a record, made once more after a restart.
func (s *Service) planAgain(rec *spool.Record) (jobcache.Plan, error) {
	if p, ok := rec.Attachment.(*jobcache.Plan); ok {
		return *p, nil
	}
	cache := s.cache()
	if cache == nil {
		return jobcache.Plan{}, ErrPython
	}
	return cache.Plan(rec.Load, jobcache.Facts{Received: rec.Received, JID: rec.JID})
}

// Keep takes a return for another node, the publisher of its job, which gets it when it can be reached; done as with
// Take.
func (s *Service) Keep(to node.ID, r Request, done func(reply []byte, err error)) {
	rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, From: string(r.From), To: string(to),
		Load: r.Load}
	s.keepFor(to, rec, func(err error) { s.answerMinion(err, done) })
}

// keepFor appends a record to the journal of what is kept for a node, once.
func (s *Service) keepFor(to node.ID, rec spool.Record, done func(error)) {
	j, err := s.openKeeper(to)
	if err != nil {
		done(err)
		return
	}
	// Not the key that acceptRecord claims: this node may become responsible for the job, and then takes what it has kept.
	s.appendRecord(j, s.window.Key(toPrefix+string(to)+"/"+rec.Minion, rec.Load), rec, "kept", done)
}

// Defers says whether returns are kept for the local master.
func (s *Service) Defers() bool { return s.c.KeepForPython != nil && s.c.KeepForPython() }

// Defer takes a return that only the local master can take and does not take now; done as with Take. ErrPython: such
// returns are not to be kept.
func (s *Service) Defer(r Request, done func(reply []byte, err error)) {
	if !s.Defers() {
		done(nil, ErrPython)
		return
	}
	rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, From: string(r.From), Load: r.Load}
	key := s.window.Key(rec.Minion, rec.Load)
	s.appendRecord(s.python, key, rec, "deferred", func(err error) { s.answerMinion(err, done) })
}

// Answered notes that the local master has answered a return: the same load, kept elsewhere because this node took too
// long, is a duplicate.
func (s *Service) Answered(minion string, load []byte) {
	s.noteTaken(s.window.Key(minion, load))
}

// noteTaken notes that a load was taken, also when whoever is taking it now fails.
func (s *Service) noteTaken(key once.Key) {
	again := func(err error) {
		if err != nil {
			s.noteTaken(key)
		}
	}
	if s.window.Claim(key, again) {
		s.window.Settle(key, nil)
	}
}

// appendRecord claims key and appends a record. The claim is settled when the journal has answered, whoever still waits
// for that: a record whose sender is gone is committed all the same.
func (s *Service) appendRecord(j *journal, key once.Key, rec spool.Record, outcome string, done func(error)) {
	same := func(err error) {
		if err == nil {
			s.metrics.count("duplicate")
		}
		done(err)
	}
	if s.window.Claim(key, same) {
		s.appendClaimed(j, key, rec, outcome, done)
	}
}

// appendClaimed appends a record whose key is claimed, and settles the claim. What the journal has refused and has
// after all counts as taken: its copy may come from another node.
func (s *Service) appendClaimed(j *journal, key once.Key, rec spool.Record, outcome string, done func(error)) {
	j.spool.Go(rec, func(err error) {
		s.window.Settle(key, err)
		if err == nil {
			s.metrics.count(outcome)
		}
		done(err)
	}, func() { s.noteTaken(key) })
}

// answerMinion calls done for a return whose journal has answered.
func (s *Service) answerMinion(err error, done func([]byte, error)) {
	if err != nil {
		s.metrics.countFailed(err)
		done(nil, err)
		return
	}
	done(answered, nil)
}

// errKnown: a record was taken here before, perhaps by the local master alone, which does not sync what it stores.
var errKnown = errors.New("returns: it was taken before")

// acceptRecord takes a record that another node kept, or that was kept here for a node that is gone, as this node's
// own. After errKnown sync what the master has stored before the copy that was kept is given up.
func (s *Service) acceptRecord(ctx context.Context, rec spool.Record, cmd string) error {
	return awaitDone(ctx, func(done func(error)) {
		key := s.window.Key(rec.Minion, rec.Load)
		same := func(err error) {
			if err == nil {
				s.metrics.count("duplicate")
				err = errKnown
			}
			done(err)
		}
		if s.window.Claim(key, same) {
			s.acceptNew(rec, cmd, key, done)
		}
	})
}

// awaitDone waits for what f does as long as ctx allows; after that f continues without a caller.
func awaitDone(ctx context.Context, f func(done func(error))) error {
	result := make(chan error, 1)
	f(func(err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) acceptNew(rec spool.Record, cmd string, key once.Key, done func(error)) {
	r := Request{
		Cmd: cmd, JID: rec.JID, Minion: rec.Minion, Load: rec.Load, Received: rec.Received, From: node.ID(rec.From),
	}
	own, plan, err := s.planReturn(r) // without the node it was kept for
	if err == nil && cmd == "_return" && s.isFiled(plan) {
		s.window.Settle(key, nil)
		s.metrics.count("duplicate")
		done(errKnown)
		return
	}
	j, outcome := s.own, "accepted"
	if err != nil {
		own.Attachment = nil
		j, outcome = s.python, "deferred"
	}
	if err != nil && !errors.Is(err, ErrPython) { // its minion has been answered: the master decides what it is
		s.metrics.countFailed(err)
		s.c.Logger.Warn("return of another node is left to the salt-master", "node", rec.From, "minion", rec.Minion, "jid",
			rec.JID, "err", err)
	}
	s.appendClaimed(j, key, own, outcome, done)
}

// isFiled says whether what a return makes was taken here before: it is in the job cache, not only ahead, under the
// minion's id, or that of the resource which it is of. The node that hands it over, or another one, may have filed it
// ahead, and is told.
func (s *Service) isFiled(p jobcache.Plan) bool {
	cache := s.cache() // once: from one moment to the next the master's options may leave none
	if cache == nil || len(p.Jobs) != 1 || !cache.Has(p.Jobs[0].JID, p.Jobs[0].Minion) {
		return false
	}
	cache.Tell(p.Jobs[0])
	return true
}
