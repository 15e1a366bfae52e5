package admin

import (
	"context"
	"net/http"
	"net/url"
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

func handledEvents(ctx context.Context, x EventExplainer, q url.Values) (adminapi.HandledEvents, error) {
	limit := handledUsually
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return adminapi.HandledEvents{}, adminapi.Errorf(adminapi.CodeInvalid, "", "limit is a number of events")
		}
		limit = n
	}
	return x.HandledEvents(ctx, q.Get("minion"), limit)
}

// Events are the verbs about events of minions.
func Events(x EventExplainer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/events/explain", serveQuery(s, "explain_event", 0,
			func(ctx context.Context, r *http.Request) (adminapi.EventExplanation, error) {
				q := r.URL.Query()
				if q.Get("minion") == "" || q.Get("tag") == "" {
					return adminapi.EventExplanation{}, adminapi.Errorf(adminapi.CodeInvalid, "", "an event has a minion and a tag")
				}
				return x.ExplainEvent(ctx, q.Get("minion"), q.Get("tag"))
			}))
		mux.HandleFunc("GET /v1/events", serveQuery(s, "handled_events", 0,
			func(ctx context.Context, r *http.Request) (adminapi.HandledEvents, error) {
				return handledEvents(ctx, x, r.URL.Query())
			}))
	}
}
