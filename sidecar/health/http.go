package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (s *Server) newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", s.answerScope(ScopeLive))
	mux.HandleFunc("/readyz", s.answerScope(ScopeReady))
	mux.HandleFunc("/pub", s.answerScope(ScopePub))
	mux.HandleFunc("/req", s.answerScope(ScopeReq))
	mux.HandleFunc("/api", s.answerScope(ScopeReq|ScopeAPI))
	if s.cfg.Leads != nil {
		mux.HandleFunc("/leader", s.answerLeader)
	}
	if s.cfg.Gatherer != nil {
		metrics := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
			MaxRequestsInFlight: 2, Timeout: 10 * time.Second, ErrorHandling: promhttp.ContinueOnError,
		})
		mux.Handle("GET /metrics", s.forTrusted(metrics))
	}
	if s.cfg.Page != nil {
		page := s.forTrusted(s.cfg.Page)
		mux.Handle("GET /status", page)
		mux.Handle("GET /status/", page)
	}
	return mux
}

// forTrusted refuses clients that are not trusted.
func (s *Server) forTrusted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isTrusted(r) {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isQuestion reports whether a request only asks; OPTIONS is what HAProxy's "option httpchk" sends when no method is
// written.
func isQuestion(w http.ResponseWriter, r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

// answerScope gives 200 or 503, and 404 to who asks for a port of minions while the only thing wrong is that they are
// being let go: HAProxy with "http-check disable-on-404" then sends no new connections and leaves the others to us.
func (s *Server) answerScope(scope Scope) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isQuestion(w, r) {
			return
		}
		report := s.cfg.Checker.Report(scope)
		status := http.StatusOK
		switch {
		case scope&ScopeReady == 0 && report.OnlyDraining():
			status = http.StatusNotFound
		case !report.OK:
			status = http.StatusServiceUnavailable
		}
		trusted := s.isTrusted(r)
		if r.URL.Query().Get("format") == "text" {
			text := report.terseText()
			if trusted {
				text = report.fullText()
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, text)
			return
		}
		writeJSON(w, status, report.newBody(trusted))
	}
}

// answerLeader gives 200 on the node that leads and 503 on every other.
func (s *Server) answerLeader(w http.ResponseWriter, r *http.Request) {
	if !isQuestion(w, r) {
		return
	}
	if s.cfg.Leads() {
		writeJSON(w, http.StatusOK, body{Status: "leader"})
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, body{Status: "not leader"})
}

// body is an answer. Reasons may name nodes, versions and paths; only trusted networks get them.
type body struct {
	Status  string      `json:"status"` // ok, failing, draining, leader, not leader
	Failing []string    `json:"failing,omitempty"`
	Checks  []bodyCheck `json:"checks,omitempty"`
}

type bodyCheck struct {
	Check  string    `json:"check"`
	Level  string    `json:"level"`
	Reason string    `json:"reason,omitempty"`
	Hint   string    `json:"hint,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

func (r Report) newBody(trusted bool) body {
	b := body{Status: "ok"}
	switch {
	case r.OnlyDraining():
		b.Status = Draining
	case !r.OK:
		b.Status = "failing"
	}
	for _, f := range r.Findings {
		if f.Level == Fail {
			b.Failing = append(b.Failing, f.Check)
		}
		if trusted {
			b.Checks = append(b.Checks, bodyCheck{
				Check: f.Check, Level: f.Level.String(), Reason: f.Reason, Hint: f.Hint, Since: f.Since.UTC().Truncate(time.Second),
			})
		}
	}
	return b
}

func writeJSON(w http.ResponseWriter, status int, b body) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(b) // a load balancer that went away needs no error
}

// terseText says which checks fail, without reasons.
func (r Report) terseText() string {
	if r.OK {
		return "ok\n"
	}
	return "failing: " + r.failingNames() + "\n"
}

// fullText says everything.
func (r Report) fullText() string {
	var b strings.Builder
	b.WriteString(r.terseText())
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-4s %s", f.Level, f.Check)
		if f.Reason != "" {
			b.WriteString(": " + f.Reason)
		}
		if f.Hint != "" {
			b.WriteString(" (" + f.Hint + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// isTrusted reports whether the request comes straight from a trusted network;
// one that a proxy passed on comes from wherever.
func (s *Server) isTrusted(r *http.Request) bool {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || r.Header.Get("Via") != "" {
		return false
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := remote.Addr().Unmap().WithZone("")
	for _, p := range s.cfg.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
