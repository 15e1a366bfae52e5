package health

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", s.answer(ScopeLive))
	mux.HandleFunc("/readyz", s.answer(ScopeReady))
	mux.HandleFunc("/pub", s.answer(ScopePub))
	mux.HandleFunc("/req", s.answer(ScopeReq))
	if s.cfg.Gatherer != nil {
		metrics := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
			MaxRequestsInFlight: 2, Timeout: 10 * time.Second, ErrorHandling: promhttp.ContinueOnError,
		})
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			if !s.trusted(r) {
				http.Error(w, "forbidden", http.StatusForbidden)
				return
			}
			metrics.ServeHTTP(w, r)
		})
	}
	return mux
}

// answer gives 200 or 503, and 404 to who asks for a port of minions while the only thing wrong is that they are being let
// go: HAProxy with "http-check disable-on-404" then sends no new connections and leaves the others to us. OPTIONS is what HAProxy's "option httpchk" sends
// when no method is written.
func (s *Server) answer(scope Scope) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
		default:
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		report := s.cfg.Checker.Report(scope)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case scope&ScopeReady == 0 && report.OnlyDraining():
			w.WriteHeader(http.StatusNotFound)
		case !report.OK:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if s.trusted(r) {
			fmt.Fprint(w, report.text())
			return
		}
		fmt.Fprint(w, report.terse())
	}
}

// terse says which checks fail, without reasons: they may name nodes, versions
// and paths.
func (r Report) terse() string {
	if r.OK {
		return "ok\n"
	}
	return "failing: " + r.failing() + "\n"
}

// text says everything.
func (r Report) text() string {
	var b strings.Builder
	if r.OK {
		b.WriteString("ok\n")
	} else {
		b.WriteString("failing: " + r.failing() + "\n")
	}
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

// trusted reports whether the request comes straight from a trusted network;
// one that a proxy passed on comes from wherever.
func (s *Server) trusted(r *http.Request) bool {
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
