package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Logger can log more and less.
type Logger interface {
	LogLevel(ctx context.Context) (adminapi.LogLevel, error)
	SetLogLevel(ctx context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error)
}

// maxLogFor bounds the time for which a level is set.
const maxLogFor = 7 * 24 * time.Hour

func (s *Server) setLogLevel(l Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.SetLogLevelRequest
		e := decodeBody(w, r, &req)
		if e == nil && (req.For < 0 || req.For > maxLogFor) {
			e = adminapi.Errorf(adminapi.CodeInvalid, "", "a level is set for a week at most")
		}
		if e != nil {
			s.writeError(w, "set_log", e)
			return
		}
		writeAnswer(s, w, r, "set_log", func(ctx context.Context) (adminapi.LogLevel, error) { return l.SetLogLevel(ctx, req) })
	}
}

// LogLevels are the verbs about the level of the log.
func LogLevels(l Logger) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/log", serveRead(s, "log", l.LogLevel))
		mux.HandleFunc("POST /v1/log", s.setLogLevel(l))
	}
}
