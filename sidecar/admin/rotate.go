package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

func (s *Server) serveRotate(rotator Rotator) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.RotateRequest
		if e := decodeBody(w, r, &req); e != nil {
			s.writeError(w, "rotate", e)
			return
		}
		s.runLong(w, r, "rotate", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return rotator.Rotate(ctx, req, p)
		})
	}
}
