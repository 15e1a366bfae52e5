package daemon

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
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
