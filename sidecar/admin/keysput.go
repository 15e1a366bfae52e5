package admin

import (
	"context"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// KeyTaker takes keys from elsewhere.
type KeyTaker interface {
	KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error)
	PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error)
}

// KeyTransfer are the verbs by which keys are merged.
func KeyTransfer(k KeyTaker) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/keys/of", serveBody(s, "keys_of", 0, k.KeysOf))
		mux.HandleFunc("POST /v1/keys/put", serveBody(s, "put_keys", 0, k.PutKeys))
	}
}
