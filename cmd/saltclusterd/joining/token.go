package joining

import (
	"context"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
)

// How long a token may be valid.
const (
	minTokenValid = time.Minute
	maxTokenValid = 30 * 24 * time.Hour
)

// TokenVerbs implements admin.TokenKeeper. Of returns the Admission of the running membership, or an error for
// operators.
type TokenVerbs struct {
	Of func() (*Admission, error)
}

// CreateToken implements admin.TokenKeeper. The token's secret is not in the request: it stays with the client.
func (t TokenVerbs) CreateToken(ctx context.Context, r adminapi.TokenRequest) (adminapi.TokenCreated, error) {
	a, err := t.Of()
	switch {
	case err != nil:
		return adminapi.TokenCreated{}, err
	case r.Valid < minTokenValid || r.Valid > maxTokenValid:
		return adminapi.TokenCreated{}, adminapi.Errorf(adminapi.CodeInvalid, "", "a token can be valid for %s to %s, not for %s",
			minTokenValid, maxTokenValid, r.Valid)
	}
	if r.Node != "" {
		if _, err := node.ParseID(r.Node); err != nil {
			return adminapi.TokenCreated{}, adminapi.Errorf(adminapi.CodeInvalid,
				"name the node by its option id, for example --node m4", "%v", err)
		}
	}
	if err := a.cfg.Supported(state.LevelJoin); err != nil {
		return adminapi.TokenCreated{}, err
	}
	audit := a.cfg.Audit("token create")
	add := state.TokenAdd{
		ID: r.ID, Public: r.Public, Expires: time.UnixMilli(audit.At).Add(r.Valid).UnixMilli(), For: node.ID(r.Node),
		Note: r.Note, Audit: audit,
	}
	if _, err := a.cfg.Decide(ctx, add); err != nil {
		return adminapi.TokenCreated{}, err
	}
	a.cfg.Logger.Info("join token made", "token", r.ID, "node", r.Node, "dur", r.Valid)
	out := adminapi.TokenCreated{
		ClusterID: a.cfg.ClusterID, ClusterPub: peer.PubFingerprint([]byte(a.cfg.Public)),
		Token: tokenRow(state.JoinToken{ID: add.ID, Expires: add.Expires, For: add.For, Note: add.Note, Audit: audit},
			time.Now()),
	}
	for _, mem := range a.cfg.Log().View().Members() {
		if !mem.Witness && a.cfg.Alive(mem.ID) { // a witness cannot admit anyone
			out.Addresses = append(out.Addresses, mem.Addr)
		}
	}
	return out, nil
}

// Tokens implements admin.TokenKeeper.
func (t TokenVerbs) Tokens(context.Context) (adminapi.Tokens, error) {
	a, err := t.Of()
	if err != nil {
		return adminapi.Tokens{}, err
	}
	out := adminapi.Tokens{Tokens: []adminapi.Token{}}
	for _, token := range a.cfg.Log().View().JoinTokens() {
		out.Tokens = append(out.Tokens, tokenRow(token, time.Now()))
	}
	return out, nil
}

// RevokeToken implements admin.TokenKeeper.
func (t TokenVerbs) RevokeToken(ctx context.Context, id string) (adminapi.Token, error) {
	a, err := t.Of()
	if err != nil {
		return adminapi.Token{}, err
	}
	tokens := a.cfg.Log().View().JoinTokens()
	i := slices.IndexFunc(tokens, func(t state.JoinToken) bool { return t.ID == id })
	if i < 0 {
		return adminapi.Token{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl token list",
			"there is no token %.40q", id)
	}
	row := tokenRow(tokens[i], time.Now())
	if _, err := a.cfg.Decide(ctx, state.TokenDrop{ID: id, Audit: a.cfg.Audit("token revoke")}); err != nil {
		return adminapi.Token{}, err
	}
	a.cfg.Logger.Info("join token revoked", "token", id)
	return row, nil
}

func tokenRow(t state.JoinToken, now time.Time) adminapi.Token {
	row := adminapi.Token{
		ID: t.ID, State: adminapi.TokenOpen, Node: string(t.For), Note: t.Note, Created: time.UnixMilli(t.At).UTC(),
		By: string(t.By), Expires: time.UnixMilli(t.Expires).UTC(),
	}
	switch {
	case t.Used.By != "":
		at := time.UnixMilli(t.Used.At).UTC()
		row.State, row.UsedBy, row.Used = adminapi.TokenUsed, string(t.Used.By), &at
	case now.UnixMilli() > t.Expires:
		row.State = adminapi.TokenExpired
	}
	return row
}
