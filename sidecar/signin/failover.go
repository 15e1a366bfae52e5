package signin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// While the local master is stopped, hung or gone, no master would decide about a new minion that happens to call this
// node. A peer's saltclusterd then gets the request whole and handles it like one of its own minions', with its own
// master, policy, limits and events; it never hands it on again. What it makes of it goes back to the minion: a refusal
// or "pending" as that master signed it, because all masters have one identity; an acceptance as this node builds it,
// once it knows of it by consensus.
//
// When no peer can decide either, the minion hears nothing. Stock minions ask again after auth_timeout (5 s),
// auth_tries (7) times, and begin anew after acceptance_wait_time; those with several masters go to the next one.
// "Pending" would also make them wait, but it would claim that a key which no master has seen waits for an operator.

const (
	// localTimeout is how long the local master has when there is a peer to ask.
	localTimeout = 3 * time.Second
	// peerTimeout is what a peer has at least, as far as there is time.
	peerTimeout = time.Second
)

// Peers are the other nodes (relay.Client).
type Peers interface {
	// SignIn hands over a sign-in as it came and returns the reply.
	SignIn(ctx context.Context, to node.ID, body []byte, remote netip.AddrPort) ([]byte, error)
}

// errNobody says that a sign-in was not to be asked of anybody.
var errNobody = errors.New("no master can decide it")

// findDecision looks for a master that decides a sign-in, and returns what decideLocally does. Asking twice does no
// harm: a master that sees a key once more says the same, and so do minions by themselves.
func (s *Service) findDecision(ctx context.Context, r *Request) (reply []byte, outcome string, err error) {
	here, others := s.decidersFor(r)
	err = errNobody
	if here {
		timeout := askTimeout
		if len(others) > 0 {
			timeout = localTimeout
		}
		reply, outcome, err = s.decideLocally(ctx, timeout, r)
		if err == nil {
			return reply, outcome, nil
		}
	}
	for _, to := range others {
		if ctx.Err() != nil {
			break
		}
		var failed error
		if reply, outcome, failed = s.relayTo(ctx, to, r); failed == nil {
			return reply, outcome, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, "", err
}

// decidersFor says who is asked. What a peer handed over ends here.
func (s *Service) decidersFor(r *Request) (here bool, others []node.ID) {
	if r.Relayed || s.cfg.Way == nil || s.cfg.Peers == nil {
		return true, nil
	}
	return s.cfg.Way(r.Auth.ID)
}

// relayTo has a peer decide a sign-in, within half of the time that is left: there may be others to ask.
func (s *Service) relayTo(ctx context.Context, to node.ID, r *Request) (reply []byte, outcome string, err error) {
	asking, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		asking, cancel = context.WithTimeout(ctx, max(time.Until(end)/2, peerTimeout))
	}
	defer cancel()
	raw, err := s.cfg.Peers.SignIn(asking, to, r.Raw, r.Remote)
	if err != nil {
		return nil, "", err
	}
	got, err := saltwire.ParseAuthReply(raw)
	if err != nil {
		return nil, "", fmt.Errorf("reply of %s: %w", to, err)
	}
	switch got.Outcome {
	case saltwire.AuthAccepted:
		return s.acceptedThere(ctx, to, r)
	case saltwire.AuthPending, saltwire.AuthRejected, saltwire.AuthFull:
		return raw, "relayed_" + got.Outcome.String(), nil
	default: // refused at its door; it was let through ours, so that is between the nodes
		return nil, "", fmt.Errorf("%s says %q", to, got.Text)
	}
}

// acceptedThere answers a sign-in that a peer's master has accepted, when the cluster has.
func (s *Service) acceptedThere(ctx context.Context, to node.ID, r *Request) (reply []byte, outcome string, err error) {
	if err := s.cfg.Keys.CatchUp(ctx); err != nil {
		return s.replyPending(r, fmt.Errorf("accepted at %s, not known here: %w", to, err))
	}
	if st := s.cfg.Keys.Standing(r.Auth.ID); !st.Accepted || !saltcrypt.SameKey(st.Pub, r.Auth.Pub) {
		return s.replyPending(r, fmt.Errorf("accepted at %s: %w", to, ErrChanged))
	}
	return nil, "relayed_accepted", nil
}
