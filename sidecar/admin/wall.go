package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// Waller has rules for what minions may ask.
type Waller interface {
	Wall(ctx context.Context) (adminapi.Wall, error)
	Protocols(ctx context.Context) (adminapi.Protocols, error)
}

// Walls are the verbs about the rules for requests of minions.
func Walls(w Waller) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/wall", serveRead(s, "wall", w.Wall))
		mux.HandleFunc("GET /v1/protocols", serveRead(s, "protocols", w.Protocols))
	}
}
