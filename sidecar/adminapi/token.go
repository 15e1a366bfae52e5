package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// TokenRequest is the body of POST /v1/tokens: let one node join, once. The
// token itself is made by whoever asks and stays there.
type TokenRequest struct {
	ID     string        `json:"id"`
	Public []byte        `json:"public"`         // what proofs of the token are checked with
	Valid  time.Duration `json:"valid"`          // from now on, nanoseconds
	Node   string        `json:"node,omitempty"` // the only node that may use it; empty: any
	Note   string        `json:"note,omitempty"`
}

// TokenCreated is the answer.
type TokenCreated struct {
	Token      Token    `json:"token"`
	ClusterID  string   `json:"cluster_id"`
	ClusterPub string   `json:"cluster_pub_fingerprint"` // of the cluster's public key; belongs into the token's text
	Addresses  []string `json:"addresses"`               // of members, to join through
}

// Token is a join token as the cluster knows it.
type Token struct {
	ID      string     `json:"id"`
	State   TokenState `json:"state"`
	Node    string     `json:"node,omitempty"` // the only node that may use it
	Note    string     `json:"note,omitempty"`
	Created time.Time  `json:"created"`
	By      string     `json:"by"` // node on which the token was created
	Expires time.Time  `json:"expires"`
	UsedBy  string     `json:"used_by,omitempty"`
	Used    *time.Time `json:"used,omitempty"`
}

// TokenState says what a token is good for.
type TokenState string

// The states of a token. A revoked one is not listed any more.
const (
	TokenOpen    TokenState = "open"
	TokenUsed    TokenState = "used"
	TokenExpired TokenState = "expired"
)

// Tokens is the answer of GET /v1/tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"` // oldest first
}

// CreateToken tells the cluster of a token.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (TokenCreated, error) {
	return sendJSON[TokenCreated](ctx, c, http.MethodPost, "/tokens", r)
}

// Tokens lists the tokens.
func (c *Client) Tokens(ctx context.Context) (Tokens, error) {
	return getJSON[Tokens](ctx, c, "/tokens", nil)
}

// RevokeToken takes a token back.
func (c *Client) RevokeToken(ctx context.Context, id string) (Token, error) {
	return sendJSON[Token](ctx, c, http.MethodDelete, "/tokens/"+url.PathEscape(id), nil)
}
