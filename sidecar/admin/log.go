package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// Logger can log more and less.
type Logger interface {
	LogLevel(ctx context.Context) (adminapi.LogLevel, error)
	SetLogLevel(ctx context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error)
}

// LogLevels are the verbs about the level of the log.
func LogLevels(l Logger) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/log", serveRead(s, "log", l.LogLevel))
		mux.HandleFunc("POST /v1/log", serveBody(s, "set_log", 0, l.SetLogLevel))
	}
}
