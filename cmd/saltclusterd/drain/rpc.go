package drain

import (
	"context"
	"net/http"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
)

// Path is where a node reports how far its drain is, and takes options for it.
const Path = "/v1/drain"

const maxQuestion = 4 << 10

var (
	reportRPC  = peerrpc.Endpoint[peerrpc.None, Report]{Method: http.MethodGet, Path: Path, MaxAnswer: 4 << 10}
	optionsRPC = peerrpc.Endpoint[Options, peerrpc.None]{
		Method: http.MethodPost, Path: Path, MaxQuestion: maxQuestion, MaxAnswer: 4 << 10,
	}
	handOverRPC = peerrpc.Endpoint[peerrpc.None, handedOver]{
		Method: http.MethodPost, Path: returns.PathLeaving, MaxQuestion: maxQuestion, MaxAnswer: 64 << 10,
	}
)

// handedOver is how many returns that its master does not answer a node still has after it was to hand them over.
type handedOver struct {
	Left int    `json:"left"`
	Why  string `json:"why,omitempty"` // they were not handed over
}

// Handle routes the calls of other members.
func (r *Runner) Handle(mux *peerrpc.Mux) {
	mux.Handle(reportRPC.Pattern(), reportRPC.Handler(r.reportForPeer))
	mux.Handle(optionsRPC.Pattern(), optionsRPC.Handler(r.setOptionsForPeer))
	mux.Handle(handOverRPC.Pattern(), handOverRPC.Handler(r.handOverForPeer))
}

func (r *Runner) reportForPeer(context.Context, node.ID, peerrpc.None) (Report, error) {
	return r.Report(), nil
}

func (r *Runner) setOptionsForPeer(_ context.Context, _ node.ID, o Options) (peerrpc.None, error) {
	if o.Over < 0 {
		return peerrpc.None{}, &peerrpc.Error{Status: http.StatusBadRequest, Text: "a drain cannot take a negative time"}
	}
	r.setOptions(o)
	return peerrpc.None{}, nil
}

func (r *Runner) handOverForPeer(ctx context.Context, _ node.ID, _ peerrpc.None) (handedOver, error) {
	return r.handOverReturns(ctx), nil
}

func (r *Runner) handOverReturns(ctx context.Context) handedOver {
	left, err := r.cfg.Returns.HandOver(ctx)
	h := handedOver{Left: left}
	if err != nil {
		h.Why = err.Error()
	}
	return h
}
