package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

const maxBody = 64 << 10 // bytes of a request body

// newHandler routes the verbs. A peer that is not allowed gets the same refusal,
// whatever was asked.
func (s *Server) newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/profile", s.serveProfile)
	for _, verbs := range s.cfg.Verbs {
		verbs(s, mux)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, "unknown", adminapi.Errorf(adminapi.CodeNotFound, "is saltclusterd older than the tool that asks?",
			"saltclusterd has no %s %s", r.Method, r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(peer)
		if !ok || !s.isAllowed(p) {
			s.log.Warn("admin request denied", "uid", p.uid, "err", p.err)
			s.writeError(w, "denied", adminapi.Errorf(adminapi.CodeDenied,
				"root, saltclusterd's own user and the members of admin_group (admin_group: salt) may", "user %d may not use the admin socket", p.uid))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serveRead serves a verb that takes nothing and changes nothing.
func serveRead[T any](s *Server, verb string, ask func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeAnswer(s, w, r, verb, ask)
	}
}

func (s *Server) serveRing(from Reporter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := adminapi.RingQuery{Minion: r.URL.Query().Get("minion"), JID: r.URL.Query().Get("jid")}
		writeAnswer(s, w, r, "ring", func(ctx context.Context) (adminapi.RingInfo, error) {
			if err := q.Validate(); err != nil {
				return adminapi.RingInfo{}, err
			}
			return from.RingInfo(ctx, q)
		})
	}
}

func writeAnswer[T any](s *Server, w http.ResponseWriter, r *http.Request, verb string,
	ask func(context.Context) (T, error)) {
	answerWithin(s, w, r, verb, s.cfg.RequestTimeout, ask)
}

func answerWithin[T any](s *Server, w http.ResponseWriter, r *http.Request, verb string, within time.Duration,
	ask func(context.Context) (T, error),
) {
	within = min(within, requestTimeout(r, within))
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	limitWrite(w, within+headerTimeout)
	v, err := ask(ctx)
	if err != nil {
		s.writeError(w, verb, toError(err))
		return
	}
	s.metrics.countRequest(verb, "ok")
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // a client that went away needs no error
}

// requestTimeout is how long who asks waits, less what the answer takes to get there: an error that says what was
// waited for is more than that nothing came.
func requestTimeout(r *http.Request, most time.Duration) time.Duration {
	d, err := time.ParseDuration(r.Header.Get(adminapi.TimeoutHeader))
	if err != nil || d <= 0 {
		return most
	}
	return d - d/10
}

// writeError answers with an error value.
func (s *Server) writeError(w http.ResponseWriter, verb string, e *adminapi.Error) {
	s.metrics.countRequest(verb, string(e.Code))
	limitWrite(w, headerTimeout)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	json.NewEncoder(w).Encode(e)
}

// decodeBody reads a bounded body into v; a field that v does not have is an
// error, for ignoring it could do something else than was asked for.
func decodeBody(w http.ResponseWriter, r *http.Request, v any) *adminapi.Error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return adminapi.Errorf(adminapi.CodeInvalid, "", "the request cannot be understood: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return adminapi.Errorf(adminapi.CodeInvalid, "", "the request cannot be understood: there is data after its end")
	}
	return nil
}

// toError keeps code and hint of an *adminapi.Error and the whole text.
func toError(err error) *adminapi.Error {
	e, ok := errors.AsType[*adminapi.Error](err)
	switch {
	case ok:
		return &adminapi.Error{Code: e.Code, Message: err.Error(), Hint: e.Hint}
	case errors.Is(err, context.DeadlineExceeded):
		return adminapi.Errorf(adminapi.CodeTimeout, "", "it did not happen in time: %v", err)
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return adminapi.Errorf(adminapi.CodeUnavailable, "", "%v", err)
	default:
		return adminapi.Errorf(adminapi.CodeInternal, "", "%v", err)
	}
}

func limitWrite(w http.ResponseWriter, d time.Duration) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}
