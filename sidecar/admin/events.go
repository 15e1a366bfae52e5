package admin

import (
	"context"
	"net/http"
	"strconv"

	"saltclusterd/sidecar/adminapi"
)

// EventExplainer knows where events of minions fire.
type EventExplainer interface {
	ExplainEvent(ctx context.Context, minion, tag string) (adminapi.EventExplanation, error)
	// HandledEvents tells which events masters got lately, of one minion or of all (empty), at most limit, newest first.
	HandledEvents(ctx context.Context, minion string, limit int) (adminapi.HandledEvents, error)
}

// handledUsually is how many events are returned when the request has no limit.
const handledUsually = 50

func (s *Server) handledEvents(x EventExplainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeAnswer(s, w, r, "handled_events", func(ctx context.Context) (adminapi.HandledEvents, error) {
			limit := handledUsually
			if text := r.URL.Query().Get("limit"); text != "" {
				n, err := strconv.Atoi(text)
				if err != nil || n < 1 {
					return adminapi.HandledEvents{}, adminapi.Errorf(adminapi.CodeInvalid, "", "limit is a number of events")
				}
				limit = n
			}
			return x.HandledEvents(ctx, r.URL.Query().Get("minion"), limit)
		})
	}
}

func (s *Server) explainEvent(x EventExplainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeAnswer(s, w, r, "explain_event", func(ctx context.Context) (adminapi.EventExplanation, error) {
			q := r.URL.Query()
			if q.Get("minion") == "" || q.Get("tag") == "" {
				return adminapi.EventExplanation{}, adminapi.Errorf(adminapi.CodeInvalid, "", "an event has a minion and a tag")
			}
			return x.ExplainEvent(ctx, q.Get("minion"), q.Get("tag"))
		})
	}
}

// Events are the verbs about events of minions.
func Events(x EventExplainer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/events/explain", s.explainEvent(x))
		mux.HandleFunc("GET /v1/events", s.handledEvents(x))
	}
}
