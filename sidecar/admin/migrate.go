package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Migrator lets nodes leave a shared file system.
type Migrator interface {
	// Migration asks all nodes how far they are; plan also for what they would do with copies in to.
	Migration(ctx context.Context, plan bool, to string) (adminapi.Migration, error)
	// Migrate has a node begin a step and does not wait for its end.
	Migrate(ctx context.Context, r adminapi.MigrateRequest) (adminapi.MigrateNode, error)
}

// migrateTimeout bounds a question: a plan counts what is on the share.
const migrateTimeout = 2 * time.Minute

// Migration are the verbs about leaving a shared file system.
func Migration(m Migrator) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/migrate", func(w http.ResponseWriter, r *http.Request) {
			// the server's ReadTimeout would end the request's context
			http.NewResponseController(w).SetReadDeadline(time.Time{})
			answerWithin(s, w, r, "migration", migrateTimeout, func(ctx context.Context) (adminapi.Migration, error) {
				return m.Migration(ctx, r.URL.Query().Get("plan") != "", r.URL.Query().Get("to"))
			})
		})
		mux.HandleFunc("POST /v1/migrate", func(w http.ResponseWriter, r *http.Request) {
			var req adminapi.MigrateRequest
			if e := decodeBody(w, r, &req); e != nil {
				s.writeError(w, "migrate", e)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
			defer cancel()
			n, err := m.Migrate(ctx, req)
			if err != nil {
				s.writeError(w, "migrate", toError(err))
				return
			}
			s.metrics.countRequest("migrate", "ok")
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(n) // a client that went away needs no error
		})
	}
}
