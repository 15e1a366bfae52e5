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
		mux.HandleFunc("POST /v1/tokens", func(w http.ResponseWriter, r *http.Request) {
			var req adminapi.TokenRequest
			if e := decodeBody(w, r, &req); e != nil {
				s.writeError(w, "token_create", e)
				return
			}
			answerWithin(s, w, r, "token_create", tokenTimeout, func(ctx context.Context) (adminapi.TokenCreated, error) {
				return k.CreateToken(ctx, req)
			})
		})
		mux.HandleFunc("DELETE /v1/tokens/{id}", func(w http.ResponseWriter, r *http.Request) {
			answerWithin(s, w, r, "token_revoke", tokenTimeout, func(ctx context.Context) (adminapi.Token, error) {
				return k.RevokeToken(ctx, r.PathValue("id"))
			})
		})
	}
}
