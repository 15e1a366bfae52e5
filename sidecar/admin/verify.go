package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Verifier can compare what the nodes hold.
type Verifier interface {
	Verify(ctx context.Context) (adminapi.Verification, error)
}

// verifyTimeout bounds a comparison: every node reads all it has, several times perhaps.
const verifyTimeout = 5 * time.Minute

func (s *Server) serveVerify(v Verifier) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout(r, verifyTimeout))
		defer cancel()
		http.NewResponseController(w).SetReadDeadline(time.Time{}) // the server's ReadTimeout would end the request's context
		limitWrite(w, verifyTimeout+headerTimeout)
		result, err := v.Verify(ctx)
		if err != nil {
			s.writeError(w, "verify", toError(err))
			return
		}
		s.metrics.countRequest("verify", "ok")
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(result) // a client that went away needs no error
	}
}

// Verifying is the verb verify.
func Verifying(v Verifier) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/verify", s.serveVerify(v))
	}
}
