package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
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
		s.writeError(w, "unknown", adminapi.Errorf(adminapi.CodeNotFound, "is saltclusterd older than saltclusterctl?",
			"saltclusterd does not support %s %s", r.Method, r.URL.Path))
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

// serveRead serves a verb that takes nothing.
func serveRead[A any](s *Server, verb string, ask func(context.Context) (A, error)) http.HandlerFunc {
	return serveQuery(s, verb, 0, func(ctx context.Context, _ *http.Request) (A, error) { return ask(ctx) })
}

// serveQuery serves a verb that takes what it needs from the address, within a time; 0: the usual one.
func serveQuery[A any](s *Server, verb string, within time.Duration,
	ask func(context.Context, *http.Request) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeAnswer(s, w, r, verb, within, func(ctx context.Context) (A, error) { return ask(ctx, r) })
	}
}

// serveBody serves a verb that takes what it needs from its body, within a time; 0: the usual one.
func serveBody[Q, A any](s *Server, verb string, within time.Duration,
	do func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if q, ok := decodeBody[Q](s, w, r, verb); ok {
			writeAnswer(s, w, r, verb, within, func(ctx context.Context) (A, error) { return do(ctx, q) })
		}
	}
}

func writeAnswer[A any](s *Server, w http.ResponseWriter, r *http.Request, verb string, within time.Duration,
	ask func(context.Context) (A, error),
) {
	if within == 0 {
		within = s.cfg.RequestTimeout
	}
	within = min(within, requestTimeout(r, within))
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	limitWrite(w, within+headerTimeout)
	// the server's ReadTimeout must not end the request's context
	http.NewResponseController(w).SetReadDeadline(time.Time{})
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

// validator is a request that may ask for what cannot be.
type validator interface{ Validate() error }

// decodeBody reads a bounded body, or answers why that is not possible; a field that Q does not have is an error,
// because ignoring it could do something else than was asked for.
func decodeBody[Q any](s *Server, w http.ResponseWriter, r *http.Request, verb string) (q Q, ok bool) {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&q)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is data after its end")
		}
	}
	if err != nil {
		err = adminapi.Errorf(adminapi.CodeInvalid, "", "malformed request: %v", err)
	} else if v, is := any(q).(validator); is {
		err = v.Validate()
	}
	if err != nil {
		s.writeError(w, verb, toError(err))
	}
	return q, err == nil
}

// toError keeps code and hint of an *adminapi.Error and the whole text.
func toError(err error) *adminapi.Error {
	e, ok := errors.AsType[*adminapi.Error](err)
	switch {
	case ok:
		return &adminapi.Error{Code: e.Code, Message: err.Error(), Hint: e.Hint}
	case errors.Is(err, context.DeadlineExceeded):
		message := "saltclusterd did not answer in time"
		if step := strings.TrimSuffix(err.Error(), context.DeadlineExceeded.Error()); step != "" {
			message = "timed out: " + strings.TrimSuffix(step, ": ")
		}
		return adminapi.Errorf(adminapi.CodeTimeout, "see its log: journalctl -u saltclusterd", "%s", message)
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return adminapi.Errorf(adminapi.CodeUnavailable, "", "%v", err)
	default:
		return adminapi.Errorf(adminapi.CodeInternal, "", "%v", err)
	}
}

func limitWrite(w http.ResponseWriter, d time.Duration) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}
