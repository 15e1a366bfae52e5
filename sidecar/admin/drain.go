package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

func (s *Server) serveDrain(d Drainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.DrainRequest
		if e := decodeBody(w, r, &req); e != nil {
			s.writeError(w, "drain", e)
			return
		}
		s.runStreamed(w, r, "drain", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return d.Drain(ctx, req, p)
		})
	}
}

func (s *Server) serveUndrain(d Drainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.UndrainRequest
		if e := decodeBody(w, r, &req); e != nil {
			s.writeError(w, "undrain", e)
			return
		}
		s.runStreamed(w, r, "undrain", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return d.Undrain(ctx, req, p)
		})
	}
}
