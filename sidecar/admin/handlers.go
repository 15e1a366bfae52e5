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

// handler routes the verbs. Everybody but an allowed peer gets the same
// refusal, whatever was asked.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	b := s.cfg.Backend
	mux.HandleFunc("GET /v1/version", read(s, "version", b.Version))
	mux.HandleFunc("GET /v1/status", read(s, "status", b.Status))
	mux.HandleFunc("GET /v1/members", read(s, "members", b.Members))
	mux.HandleFunc("GET /v1/config", read(s, "config", b.Config))
	mux.HandleFunc("GET /v1/minions", read(s, "minions", b.Minions))
	mux.HandleFunc("GET /v1/ring", s.ring)
	mux.HandleFunc("POST /v1/bootstrap", s.bootstrap)
	mux.HandleFunc("POST /v1/join", s.join)
	mux.HandleFunc("POST /v1/drain", s.drain)
	mux.HandleFunc("POST /v1/undrain", s.undrain)
	mux.HandleFunc("POST /v1/remove", s.remove)
	mux.HandleFunc("POST /v1/transfer", s.transfer)
	mux.HandleFunc("GET /v1/recover", read(s, "recover_plan", b.RecoverPlan))
	mux.HandleFunc("POST /v1/recover", s.recover)
	mux.HandleFunc("GET /v1/snapshot", s.saveSnapshot)
	mux.HandleFunc("POST /v1/snapshot", s.restoreSnapshot)
	mux.HandleFunc("POST /v1/rotate", s.rotate)
	mux.HandleFunc("GET /v1/profile", s.profile)
	if j, ok := b.(JobKeeper); ok {
		mux.HandleFunc("GET /v1/jobs", s.jobs(j))
		mux.HandleFunc("GET /v1/jobs/{jid}", s.job(j))
	}
	if u, ok := b.(Upgrader); ok {
		mux.HandleFunc("POST /v1/upgrade", s.upgrade(u))
	}
	if w, ok := b.(Waller); ok {
		mux.HandleFunc("GET /v1/wall", read(s, "wall", w.Wall))
		mux.HandleFunc("GET /v1/protocols", read(s, "protocols", w.Protocols))
	}
	if p, ok := b.(Presencer); ok {
		mux.HandleFunc("GET /v1/presence", read(s, "presence", p.Presence))
	}
	if v, ok := b.(Verifier); ok {
		mux.HandleFunc("GET /v1/verify", s.verify(v))
	}
	if k, ok := b.(KeyKeeper); ok {
		mux.HandleFunc("GET /v1/keys", s.keys(k))
		mux.HandleFunc("POST /v1/keys", s.decideKeys(k))
	}
	if k, ok := b.(KeyHolder); ok {
		mux.HandleFunc("GET /v1/keys/held", read(s, "held_keys", k.HeldKeys))
		mux.HandleFunc("POST /v1/keys/held/forget", read(s, "forget_held_keys", k.ForgetHeldKeys))
	}
	if k, ok := b.(KeyTaker); ok {
		mux.HandleFunc("POST /v1/keys/of", s.keysOf(k))
		mux.HandleFunc("POST /v1/keys/put", s.putKeys(k))
	}
	if l, ok := b.(Logger); ok {
		mux.HandleFunc("GET /v1/log", read(s, "log", l.LogLevel))
		mux.HandleFunc("POST /v1/log", s.setLogLevel(l))
	}
	if x, ok := b.(EventExplainer); ok {
		mux.HandleFunc("GET /v1/events/explain", s.explainEvent(x))
		mux.HandleFunc("GET /v1/events", s.handledEvents(x))
	}
	if x, ok := b.(Examiner); ok {
		mux.HandleFunc("GET /v1/checkup", read(s, "checkup", x.Checkup))
	}
	if k, ok := b.(RootsKeeper); ok {
		s.handleRoots(mux, k)
	}
	if m, ok := b.(Migrator); ok {
		s.handleMigrate(mux, m)
	}
	if k, ok := b.(ReturnKeeper); ok {
		s.handleReturns(mux, k)
	}
	if t, ok := b.(TokenKeeper); ok {
		s.handleTokens(mux, t)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, "unknown", adminapi.Errorf(adminapi.CodeNotFound, "is saltclusterd older than the tool that asks?",
			"saltclusterd has no %s %s", r.Method, r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(peer)
		if !ok || !s.allowed(p) {
			s.log.Warn("admin request denied", "uid", p.uid, "err", p.err)
			s.fail(w, "denied", adminapi.Errorf(adminapi.CodeDenied,
				"root, saltclusterd's own user and the members of admin_group (admin_group: salt) may", "user %d may not use the admin socket", p.uid))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// read serves a verb that takes nothing and changes nothing.
func read[T any](s *Server, verb string, ask func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(s, w, r, verb, ask)
	}
}

func (s *Server) ring(w http.ResponseWriter, r *http.Request) {
	q := adminapi.RingQuery{Minion: r.URL.Query().Get("minion"), JID: r.URL.Query().Get("jid")}
	answer(s, w, r, "ring", func(ctx context.Context) (adminapi.RingInfo, error) {
		if err := q.Validate(); err != nil {
			return adminapi.RingInfo{}, err
		}
		return s.cfg.Backend.RingInfo(ctx, q)
	})
}

func answer[T any](s *Server, w http.ResponseWriter, r *http.Request, verb string, ask func(context.Context) (T, error)) {
	answerWithin(s, w, r, verb, s.cfg.RequestTimeout, ask)
}

func answerWithin[T any](s *Server, w http.ResponseWriter, r *http.Request, verb string, within time.Duration,
	ask func(context.Context) (T, error),
) {
	within = min(within, patience(r, within))
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	limitWrite(w, within+headerTimeout)
	v, err := ask(ctx)
	if err != nil {
		s.fail(w, verb, toError(err))
		return
	}
	s.metrics.request(verb, "ok")
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // a client that went away needs no error
}

// patience is how long who asks waits, less what the answer takes to get there: an error that says what was waited for is more than that nothing came.
func patience(r *http.Request, most time.Duration) time.Duration {
	d, err := time.ParseDuration(r.Header.Get(adminapi.PatienceHeader))
	if err != nil || d <= 0 {
		return most
	}
	return d - d/10
}

// fail answers with an error value.
func (s *Server) fail(w http.ResponseWriter, verb string, e *adminapi.Error) {
	s.metrics.request(verb, string(e.Code))
	limitWrite(w, headerTimeout)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	json.NewEncoder(w).Encode(e)
}

// decode reads a bounded body into v; a field that v does not have is an
// error, for ignoring it could do something else than was asked for.
func decode(w http.ResponseWriter, r *http.Request, v any) *adminapi.Error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return adminapi.Errorf(adminapi.CodeInvalid, "", "the request cannot be understood: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return adminapi.Errorf(adminapi.CodeInvalid, "", "the request cannot be understood: it goes on after its end")
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
