package admin

import (
	"context"
	"net/http"
	"strconv"

	"saltclusterd/sidecar/adminapi"
)

// JobKeeper knows the jobs of the cluster.
type JobKeeper interface {
	ListJobs(ctx context.Context, n int) (adminapi.JobList, error)
	ShowJob(ctx context.Context, jid string) (adminapi.Job, error)
}

// maxJobs bounds a list.
const maxJobs = 10_000

// Jobs are the verbs about jobs.
func Jobs(k JobKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/jobs", serveQuery(s, "jobs", 0,
			func(ctx context.Context, r *http.Request) (adminapi.JobList, error) {
				n, err := strconv.Atoi(r.URL.Query().Get("n"))
				if err != nil || n < 1 || n > maxJobs {
					return adminapi.JobList{}, adminapi.Errorf(adminapi.CodeInvalid, "", "a list has 1 to %d jobs", maxJobs)
				}
				return k.ListJobs(ctx, n)
			}))
		mux.HandleFunc("GET /v1/jobs/{jid}", serveQuery(s, "job", 0,
			func(ctx context.Context, r *http.Request) (adminapi.Job, error) {
				return k.ShowJob(ctx, r.PathValue("jid"))
			}))
	}
}
