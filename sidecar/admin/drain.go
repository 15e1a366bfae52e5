package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

func (s *Server) drain(d Drainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.DrainRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "drain", e)
			return
		}
		s.stream(w, r, "drain", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return d.Drain(ctx, req, p)
		})
	}
}

func (s *Server) undrain(d Drainer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.UndrainRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "undrain", e)
			return
		}
		s.stream(w, r, "undrain", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return d.Undrain(ctx, req, p)
		})
	}
}
