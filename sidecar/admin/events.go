package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// EventExplainer is a Backend that knows where events of minions fire.
type EventExplainer interface {
	ExplainEvent(ctx context.Context, minion, tag string) (adminapi.EventExplanation, error)
}

func (s *Server) explainEvent(x EventExplainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(s, w, r, "explain_event", func(ctx context.Context) (adminapi.EventExplanation, error) {
			q := r.URL.Query()
			if q.Get("minion") == "" || q.Get("tag") == "" {
				return adminapi.EventExplanation{}, adminapi.Errorf(adminapi.CodeInvalid, "", "an event has a minion and a tag")
			}
			return x.ExplainEvent(ctx, q.Get("minion"), q.Get("tag"))
		})
	}
}
