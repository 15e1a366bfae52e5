package daemon

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/saltwire"
)

const (
	pathDrain = "/v1/drain"
	maxDrain  = 4 << 10
)

// A node reports how far its drain is, takes an operator's wishes for the next one, and hands over the returns that its master does not answer.
var (
	drainReportRPC = peerrpc.Endpoint[peerrpc.None, drainReport]{Method: http.MethodGet, Path: pathDrain, MaxAnswer: maxDrain}
	drainWishesRPC = peerrpc.Endpoint[drainWishes, peerrpc.None]{Method: http.MethodPost, Path: pathDrain, MaxQuestion: maxDrain, MaxAnswer: maxDrain}
	handOverRPC    = peerrpc.Endpoint[peerrpc.None, handedOver]{Method: http.MethodPost, Path: returns.PathLeaving, MaxQuestion: maxDrain, MaxAnswer: 64 << 10}
)

func (m *member) reportDrain(context.Context, node.ID, peerrpc.None) (drainReport, error) {
	return m.svc.drain.report(), nil
}

func (m *member) takeDrainWishes(_ context.Context, _ node.ID, wishes drainWishes) (peerrpc.None, error) {
	if wishes.Over < 0 {
		return peerrpc.None{}, &peerrpc.Error{Status: http.StatusBadRequest, Text: "a drain cannot take a negative time"}
	}
	m.svc.drain.wish(wishes)
	return peerrpc.None{}, nil
}

// drainReport asks a node how far its drain is.
func (m *member) drainReport(ctx context.Context, id node.ID) (drainReport, error) {
	if id == m.d.id {
		return m.svc.drain.report(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return drainReportRPC.Call(ctx, m.client(), id, peerrpc.None{})
}

// drainWish tells a node what the operator wants of its next drain.
func (m *member) drainWish(ctx context.Context, id node.ID, w drainWishes) error {
	if id == m.d.id {
		m.svc.drain.wish(w)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	_, err := drainWishesRPC.Call(ctx, m.client(), id, w)
	return err
}

// handedOver is what a node tells of the returns that its master does not answer, which it was to hand over.
type handedOver struct {
	Left int    `json:"left"`
	Why  string `json:"why,omitempty"` // they were not handed over
}

// handOverWithin is how long a node may take for it: its master may have one of them in hand.
const handOverWithin = time.Minute

func (m *member) handOver(ctx context.Context) handedOver {
	left, err := m.svc.returns.HandOver(ctx)
	h := handedOver{Left: left}
	if err != nil {
		h.Why = err.Error()
	}
	return h
}

func (m *member) handOverForPeer(ctx context.Context, _ node.ID, _ peerrpc.None) (handedOver, error) {
	return m.handOver(ctx), nil
}

// askToHandOver has a node hand over what its master does not answer.
func (m *member) askToHandOver(ctx context.Context, id node.ID) (handedOver, error) {
	ctx, cancel := context.WithTimeout(ctx, handOverWithin)
	defer cancel()
	if id == m.d.id {
		return m.handOver(ctx), nil
	}
	return handOverRPC.Call(ctx, m.client(), id, peerrpc.None{})
}

// publish hands a publication of the local master on, unless that was done when it was long overdue.
func (s *service) publish(p fanout.Publication) error {
	peek, err := saltwire.PeekPub(p.Plain)
	if err == nil && s.missed.Republished(peek.JID, p.Plain) {
		s.m.d.log.Info("publication of the salt-master came long after it was saved, and had been taken from its job cache", "jid", peek.JID)
		return nil
	}
	if err == nil && peek.JID != "" && !p.TopicOnly { // not for further copies of one publication
		s.notePublished(peek, p.Plain)
	}
	return s.hub.Local(p)
}

// notePublished tells who wants to know of a job of the local master's.
func (s *service) notePublished(peek saltwire.PubPeek, plain []byte) {
	s.published.note(peek, plain)
	s.cache.Published(peek.JID)
	s.umask.publishedHere(peek.JID)
}

// publishMissed publishes a job that the local master has published while nobody listened.
func (s *service) publishMissed(plain []byte) error {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		return fmt.Errorf("read job from the job cache: %w", err)
	}
	s.notePublished(peek, plain)
	return s.hub.Local(fanout.Publication{Plain: plain})
}

// jobPatience is how long the master's command line waits before it asks for its job (again).
func (s *service) jobPatience() time.Duration {
	master := s.m.d.master
	return time.Duration(master.Int("timeout")+master.Int("gather_job_timeout")) * time.Second
}

// jobProgress looks into the master's job cache.
func (s *service) jobProgress(jid string) (got, want int) {
	return jobcache.Progress(s.m.d.master.CacheDir, s.m.d.master.Text("hash_type"), jid)
}
