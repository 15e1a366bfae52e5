package signin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// askTimeout bounds a sign-in that the master decides: a little less than the minion's auth_timeout of 5 s.
const askTimeout = 4500 * time.Millisecond

// Outcomes of a sign-in that the master accepted.
const (
	outcomeAccepted  = "accepted_by_master"
	outcomeUndecided = "pending_undecided" // the cluster has not
)

// askForDecision has a master decide a sign-in by its own policy.
func (s *Service) askForDecision(ctx context.Context, l *line, r *Request) {
	reply, outcome, err := s.findDecision(ctx, r)
	if err != nil {
		s.cfg.Logger.Warn("sign-in not decided", "minion", r.Auth.ID, "err", err)
		s.finishRequest(l, r, nil, "undecided")
		return
	}
	if reply == nil {
		s.acceptRequest(ctx, l, r, outcome)
		return
	}
	s.finishRequest(l, r, reply, outcome)
}

// decideLocally has the local master decide, which has to do so within timeout. It returns the reply to hand on, or
// nil when the minion is accepted and answered with the cluster's keys.
func (s *Service) decideLocally(ctx context.Context, timeout time.Duration,
	r *Request) (reply []byte, outcome string, err error) {
	local, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.cfg.Keys.Settled(local); errors.Is(err, ErrNoQuorum) {
		return s.replyPending(r, err)
	} else if err != nil {
		return nil, "", fmt.Errorf("wait for key files: %w", err)
	}
	st := s.cfg.Keys.Standing(r.Auth.ID)
	// an accepted minion's session is not a stranger's to replace
	if !st.Accepted || saltcrypt.SameKey(st.Pub, r.Auth.Pub) {
		session := s.cfg.Keys.Session(r.Auth.ID, r.Auth.Pub)
		if _, _, err := s.cfg.Sessions.Ensure(r.Auth.ID, session); err != nil {
			return nil, "", fmt.Errorf("prepare session: %w", err)
		}
		if !st.Accepted {
			defer func() { s.discardSession(r.Auth.ID, session, outcome) }()
		}
	}
	raw, err := s.cfg.Master.Do(local, r.Raw)
	if err != nil {
		return nil, "", fmt.Errorf("ask local master: %w", err)
	}
	got, err := saltwire.ParseAuthReply(raw)
	if err != nil {
		return nil, "", fmt.Errorf("local master's reply: %w", err)
	}
	switch got.Outcome {
	case saltwire.AuthPending:
		return raw, "pending", nil
	case saltwire.AuthRejected:
		return raw, "rejected", nil
	case saltwire.AuthFull:
		return raw, "full", nil
	case saltwire.AuthAccepted:
		return s.recordAccepted(ctx, r, st)
	default:
		return raw, "refused", nil
	}
}

// discardSession removes the session file of a sign-in that was not accepted: a stranger with a name per request would
// leave one behind for each. Should the master accept after all, too late for us to hear, the next Ensure makes it
// again.
func (s *Service) discardSession(id string, session saltcrypt.Key, outcome string) {
	if outcome == outcomeAccepted || outcome == outcomeUndecided {
		return // a worker has read it
	}
	if err := s.cfg.Sessions.Discard(id, session); err != nil {
		s.cfg.Logger.Debug("session file of an unaccepted minion not removed", "minion", id, "err", err)
	}
}

// recordAccepted makes the master's "accepted" the cluster's before the minion hears of it.
func (s *Service) recordAccepted(ctx context.Context, r *Request, st Standing) (reply []byte, outcome string,
	err error) {
	if st.Accepted && saltcrypt.SameKey(st.Pub, r.Auth.Pub) {
		return nil, outcomeAccepted, nil
	}
	err = s.cfg.Keys.Accept(ctx, r.Auth.ID, r.Auth.Pub, st)
	switch {
	case err == nil:
		return nil, outcomeAccepted, nil
	case errors.Is(err, ErrChanged), errors.Is(err, ErrNoQuorum):
		return s.replyPending(r, err)
	default:
		return nil, "", fmt.Errorf("propose key: %w", err)
	}
}

// replyPending answers "pending" when it is not ours to decide now: the minion comes again in acceptance_wait_time and
// finds it decided.
func (s *Service) replyPending(r *Request, reason error) (reply []byte, outcome string, err error) {
	s.cfg.Logger.Warn("sign-in left pending", "minion", r.Auth.ID, "reason", reason)
	// the time for asking may be over, of which the reason is
	if !s.spendShare(s.ctx, func() { reply, err = s.replier.buildPending(r.Auth) }) {
		return nil, outcomeUndecided, fmt.Errorf("answer pending: %w", context.Cause(s.ctx))
	}
	return reply, outcomeUndecided, err
}
