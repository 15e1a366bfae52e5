package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

func (s *Server) rotate(rotator Rotator) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.RotateRequest
		if e := decode(w, r, &req); e != nil {
			s.fail(w, "rotate", e)
			return
		}
		s.operate(w, r, "rotate", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return rotator.Rotate(ctx, req, p)
		})
	}
}
