package admin

import (
	"context"
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
		mux.HandleFunc("GET /v1/migrate", serveQuery(s, "migration", migrateTimeout,
			func(ctx context.Context, r *http.Request) (adminapi.Migration, error) {
				return m.Migration(ctx, r.URL.Query().Get("plan") != "", r.URL.Query().Get("to"))
			}))
		mux.HandleFunc("POST /v1/migrate", serveBody(s, "migrate", 0, m.Migrate))
	}
}
