package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/spool"
)

const (
	// stuckAfter is how long the job cache may not be writable before health says so.
	stuckAfter = 10 * time.Second
	// unansweredAfter is how long the salt-master may leave a return, which is sent to it again and again, unanswered
	// before health says so.
	unansweredAfter = 5 * time.Minute
)

// ReturnsStatus describes how returns are taken and which of them wait.
func (s *Service) ReturnsStatus() *adminapi.Returns {
	out := &adminapi.Returns{}
	for _, cmd := range returnCommands {
		ok, reason := s.Returns.Native(cmd)
		out.Paths = append(out.Paths, newPath(cmd, ok, reason))
	}
	ok, reason := s.Events.Native()
	out.Paths = append(out.Paths, newPath("_minion_event", ok, reason))
	out.Paths = append(out.Paths, s.minePaths()...)
	for _, j := range s.Returns.Stats() {
		row := adminapi.Journal{Name: j.Name, State: string(j.State), Bytes: j.Bytes, MaxBytes: j.MaxBytes, Error: j.Err}
		for _, c := range j.Consumers {
			w := adminapi.Waiting{Consumer: c.Name, Records: c.Pending, Error: c.Err}
			if at, ok := j.Oldest[c.Name]; ok && c.Pending > 0 {
				w.Oldest = at
			}
			row.Waiting = append(row.Waiting, w)
		}
		out.Journals = append(out.Journals, row)
	}
	if aside, _ := s.Returns.Unanswered(); len(aside) > 0 {
		out.Unanswered, out.UnansweredSince = len(aside), aside[0].Since
	}
	return out
}

// CheckReturns fails when returns of minions can neither be kept nor be given to the master.
func (s *Service) CheckReturns(ctx context.Context) health.Result {
	for _, j := range s.Returns.Stats() {
		if j.State != spool.StateOK {
			r := health.Result{
				Level:  health.Warn,
				Reason: fmt.Sprintf("the journal %q accepts no returns (%s): %s", j.Name, j.State, j.Err),
				Hint:   "make room in or repair " + s.c.Returns.Dir + ", or raise spool_size",
			}
			if s.c.MasterProblem(ctx) != "" {
				r.Level = health.Fail
			}
			return r
		}
		for _, c := range j.Consumers {
			if c.Name == "files" && c.Err != "" && time.Since(c.Since) > stuckAfter {
				return health.Result{
					Level: health.Warn, Reason: "acknowledged returns cannot be written to the job cache: " + c.Err,
					Hint: "they wait in the journal; check " + filepath.Join(s.c.Master.CacheDir, "jobs"),
				}
			}
		}
	}
	aside, full := s.Returns.Unanswered()
	return checkUnanswered(aside, full, time.Now())
}

// checkUnanswered warns of returns that the salt-master does not answer though it answers others, the oldest first.
func checkUnanswered(aside []returns.Unanswered, full bool, now time.Time) health.Result {
	const hint = "saltclusterctl returns list shows them, and the salt-master's log may say why; " +
		"saltclusterctl returns drop ID gives one up"
	count := wording.Plural(len(aside), "return")
	switch {
	case full:
		return health.Result{
			Level:  health.Warn,
			Reason: count + " that the salt-master does not answer, and there is no room for more",
			Hint:   hint,
		}
	case len(aside) > 0 && now.Sub(aside[0].Since) > unansweredAfter:
		return health.Result{
			Level: health.Warn,
			Reason: fmt.Sprintf("the salt-master does not answer %s that only it can process, although it answers others; "+
				"the first is %s's of %s, put aside at %s",
				count, aside[0].Minion, cmp.Or(aside[0].JID, "no job"), aside[0].Since.UTC().Format(time.RFC3339)),
			Hint: hint,
		}
	}
	return fine
}

// Verbs implements admin.ReturnKeeper, with or without a membership.
type Verbs struct {
	Self string
	Of   func() (*Service, error) // the Service of the running membership, or why there is none
}

// UnansweredReturns lists the returns that the master does not answer.
func (v Verbs) UnansweredReturns(context.Context) (adminapi.UnansweredReturns, error) {
	s, err := v.Of()
	if err != nil {
		return adminapi.UnansweredReturns{}, err
	}
	list, full := s.Returns.Unanswered()
	out := adminapi.UnansweredReturns{From: v.Self, Full: full, Returns: []adminapi.UnansweredReturn{}}
	for _, one := range list[:min(len(list), adminapi.MaxUnansweredListed)] {
		out.Returns = append(out.Returns, unansweredReturn(one))
	}
	out.More = len(list) - len(out.Returns)
	return out, nil
}

func unansweredReturn(u returns.Unanswered) adminapi.UnansweredReturn {
	return adminapi.UnansweredReturn{
		ID: u.ID, Minion: u.Minion, JID: u.JID, Function: u.Fun, Received: u.Received, Since: u.Since, Bytes: u.Bytes,
		Tries: u.Tries, Next: u.Next, Error: u.Err,
	}
}

// RetryReturns gives these returns to the master again at once.
func (v Verbs) RetryReturns(context.Context) (adminapi.RetriedReturns, error) {
	s, err := v.Of()
	if err != nil {
		return adminapi.RetriedReturns{}, err
	}
	due, damaged := s.Returns.Again()
	return adminapi.RetriedReturns{
		From: v.Self, Returns: due, Damaged: damaged, MasterDown: !s.c.Returns.Python.Up(),
	}, nil
}

// DropReturn gives one of these returns up.
func (v Verbs) DropReturn(_ context.Context, id string) (adminapi.UnansweredReturn, error) {
	s, err := v.Of()
	if err != nil {
		return adminapi.UnansweredReturn{}, err
	}
	one, err := s.Returns.Drop(id)
	if errors.Is(err, returns.ErrNotAside) {
		return adminapi.UnansweredReturn{}, adminapi.Errorf(adminapi.CodeNotFound,
			"saltclusterctl returns list shows those of this node", "no return with the id %q was put aside here", id)
	}
	return unansweredReturn(one), err
}
