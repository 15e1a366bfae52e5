package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// TokenKeeper lets nodes join with one-time tokens.
type TokenKeeper interface {
	CreateToken(ctx context.Context, r adminapi.TokenRequest) (adminapi.TokenCreated, error)
	Tokens(ctx context.Context) (adminapi.Tokens, error)
	RevokeToken(ctx context.Context, id string) (adminapi.Token, error)
}

// tokenTimeout bounds what the cluster has to decide.
const tokenTimeout = 12 * time.Second

// Tokens are the verbs about join tokens.
func Tokens(k TokenKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/tokens", serveRead(s, "tokens", k.Tokens))
		mux.HandleFunc("POST /v1/tokens", serveBody(s, "token_create", tokenTimeout, k.CreateToken))
		mux.HandleFunc("DELETE /v1/tokens/{id}", serveQuery(s, "token_revoke", tokenTimeout,
			func(ctx context.Context, r *http.Request) (adminapi.Token, error) {
				return k.RevokeToken(ctx, r.PathValue("id"))
			}))
	}
}
