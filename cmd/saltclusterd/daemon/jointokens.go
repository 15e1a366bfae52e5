package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
)

// How long a token may be good for.
const (
	minTokenValid = time.Minute
	maxTokenValid = 30 * 24 * time.Hour
)

// CreateToken implements admin.TokenKeeper. The token's secret stays with whoever asks.
func (d *Daemon) CreateToken(ctx context.Context, r adminapi.TokenRequest) (adminapi.TokenCreated, error) {
	m := d.current()
	switch {
	case m == nil:
		return adminapi.TokenCreated{}, d.errNoMember()
	case r.Valid < minTokenValid || r.Valid > maxTokenValid:
		return adminapi.TokenCreated{}, adminapi.Errorf(adminapi.CodeInvalid, "", "a token is good for %s to %s, not for %s",
			minTokenValid, maxTokenValid, r.Valid)
	}
	if r.Node != "" {
		if _, err := node.ParseID(r.Node); err != nil {
			return adminapi.TokenCreated{}, adminapi.Errorf(adminapi.CodeInvalid, "it is the option id of the node that shall join", "%v", err)
		}
	}
	if err := m.knows(state.LevelJoin); err != nil {
		return adminapi.TokenCreated{}, err
	}
	audit := m.audit("token create")
	add := state.TokenAdd{
		ID: r.ID, Public: r.Public, Expires: time.UnixMilli(audit.At).Add(r.Valid).UnixMilli(), For: node.ID(r.Node), Note: r.Note, Audit: audit,
	}
	if _, err := m.decide(ctx, add); err != nil {
		return adminapi.TokenCreated{}, err
	}
	m.log.Info("join token made", "token", r.ID, "node", r.Node, "dur", r.Valid)
	out := adminapi.TokenCreated{
		ClusterID: m.seed.ClusterID, ClusterPub: peer.PubFingerprint([]byte(m.public)),
		Token: tokenRow(state.JoinToken{ID: add.ID, Expires: add.Expires, For: add.For, Note: add.Note, Audit: audit}, time.Now()),
	}
	for _, mem := range m.cons.View().Members() {
		if !mem.Witness && m.alive(mem.ID) { // a witness cannot let anybody in
			out.Addresses = append(out.Addresses, mem.Addr)
		}
	}
	return out, nil
}

// Tokens implements admin.TokenKeeper.
func (d *Daemon) Tokens(context.Context) (adminapi.Tokens, error) {
	m := d.current()
	if m == nil {
		return adminapi.Tokens{}, d.errNoMember()
	}
	out := adminapi.Tokens{Tokens: []adminapi.Token{}}
	for _, t := range m.cons.View().JoinTokens() {
		out.Tokens = append(out.Tokens, tokenRow(t, time.Now()))
	}
	return out, nil
}

// RevokeToken implements admin.TokenKeeper.
func (d *Daemon) RevokeToken(ctx context.Context, id string) (adminapi.Token, error) {
	m := d.current()
	if m == nil {
		return adminapi.Token{}, d.errNoMember()
	}
	hint := "saltclusterctl token list"
	i := slices.IndexFunc(m.cons.View().JoinTokens(), func(t state.JoinToken) bool { return t.ID == id })
	if i < 0 {
		return adminapi.Token{}, adminapi.Errorf(adminapi.CodeNotFound, hint, "there is no token %.40q", id)
	}
	row := tokenRow(m.cons.View().JoinTokens()[i], time.Now())
	if _, err := m.decide(ctx, state.TokenDrop{ID: id, Audit: m.audit("token revoke")}); err != nil {
		return adminapi.Token{}, err
	}
	m.log.Info("join token revoked", "token", id)
	return row, nil
}

func tokenRow(t state.JoinToken, now time.Time) adminapi.Token {
	row := adminapi.Token{
		ID: t.ID, State: adminapi.TokenOpen, Node: string(t.For), Note: t.Note, Created: time.UnixMilli(t.At).UTC(), By: string(t.By),
		Expires: time.UnixMilli(t.Expires).UTC(),
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

// decide has one command decided for an operator, and says it in his words when it is not.
func (m *member) decide(ctx context.Context, c state.Command) (state.Result, error) {
	deciding, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	results, err := m.cons.Propose(deciding, c)
	if undecided(ctx, err) {
		return state.Result{}, m.noQuorum(err)
	}
	if errors.Is(err, consensus.ErrInvalid) {
		return state.Result{}, adminapi.Errorf(adminapi.CodeInvalid, "", "%v", err)
	}
	if err != nil {
		return state.Result{}, fmt.Errorf("%s: %w", c.Type(), err)
	}
	switch r := results[0]; r.Code {
	case state.OK:
		return r, nil
	case state.Invalid:
		return r, adminapi.Errorf(adminapi.CodeInvalid, "", "%s", r.Message)
	case state.NotFound, state.UnknownMember:
		return r, adminapi.Errorf(adminapi.CodeNotFound, "", "%s", r.Message)
	case state.Conflict, state.LimitReached:
		return r, adminapi.Errorf(adminapi.CodeRefused, "", "%s", r.Message)
	default:
		return r, r.Err()
	}
}
