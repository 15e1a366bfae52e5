package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// States of a MinionKey, beside those of the cluster.
const (
	KeyAccepted = "accepted"
	KeyPending  = "pending"
	KeyRejected = "rejected"
	KeyDeleted  = "deleted" // it is remembered for a while
	KeyDenied   = "denied"  // it was offered for an id that has another one
)

// MinionKey is a key as the cluster has decided about it, and the decision.
type MinionKey struct {
	ID          string    `json:"id"`
	State       string    `json:"state"`
	Fingerprint string    `json:"fingerprint,omitempty"` // as salt-key -f prints it
	Rev         uint64    `json:"rev"`                   // revision of the decision; grows with every decision of the cluster
	By          string    `json:"by,omitempty"`          // node on which the decision was made
	At          time.Time `json:"at,omitzero"`           // time of the decision by that node's clock
	Cause       string    `json:"cause,omitempty"`       // salt-key, auto-accept, saltclusterctl, ...
}

// KeyQuery asks for some keys.
type KeyQuery struct {
	State   string // empty: all that are not deleted
	Match   string // glob; empty: all
	ID      string // this one only, with what was denied for it
	After   string // only ids behind this one, in their order; not with History
	History bool   // the newest decisions first, deletions among them
	Limit   int    // 0: as many as the daemon gives
}

// Keys is the answer of GET /v1/keys.
type Keys struct {
	From   string         `json:"from"`
	Rev    uint64         `json:"rev"` // revision of the keys that this node knows
	Counts map[string]int `json:"counts"`
	Keys   []MinionKey    `json:"keys"`
	More   int            `json:"more,omitempty"` // number of keys that are not listed
}

// Next is the question for the keys that follow in a list with More; false: nothing follows, or it cannot be told where
// the list continues. Denied keys come after all others and are not paged through.
func (k Keys) Next(q KeyQuery) (KeyQuery, bool) {
	if k.More == 0 || q.History {
		return q, false
	}
	for _, last := range slices.Backward(k.Keys) {
		if last.State != KeyDenied {
			after := q.After
			q.After = last.ID
			return q, last.ID > after // a daemon of before does not know After
		}
	}
	return q, false
}

// MaxDecided bounds the keys of one DecideKeysRequest.
const MaxDecided = 256

// DecideKeysRequest is the body of POST /v1/keys.
type DecideKeysRequest struct {
	State string   `json:"state"` // KeyAccepted, KeyRejected or KeyDeleted
	IDs   []string `json:"ids"`   // 1 to MaxDecided
}

// Validate bounds the ids, and refuses a state that is not decided about.
func (r DecideKeysRequest) Validate() error {
	switch {
	case len(r.IDs) == 0 || len(r.IDs) > MaxDecided:
		return Errorf(CodeInvalid, "", "1 to %d keys can be decided at a time", MaxDecided)
	case r.State != KeyAccepted && r.State != KeyRejected && r.State != KeyDeleted:
		return Errorf(CodeInvalid, "", "a key can be accepted, rejected or deleted, not %q", r.State)
	}
	return nil
}

// DecidedKeys is its answer.
type DecidedKeys struct {
	Rev  uint64       `json:"rev"`
	Keys []DecidedKey `json:"keys"`
}

// DecidedKey is what became of one.
type DecidedKey struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

// Keys asks for minion keys.
func (c *Client) Keys(ctx context.Context, q KeyQuery) (Keys, error) {
	v := url.Values{"state": {q.State}, "match": {q.Match}, "id": {q.ID}, "limit": {strconv.Itoa(q.Limit)}}
	if q.After != "" {
		v.Set("after", q.After)
	}
	if q.History {
		v.Set("history", "1")
	}
	return getJSON[Keys](ctx, c, "/keys", v)
}

// DecideKeys accepts, rejects or deletes keys in the whole cluster.
func (c *Client) DecideKeys(ctx context.Context, r DecideKeysRequest) (DecidedKeys, error) {
	return sendJSON[DecidedKeys](ctx, c, http.MethodPost, "/keys", r)
}

// HeldKeys are minions whose accepted keys were taken away on one host, and restored.
type HeldKeys struct {
	Node string   `json:"node"`
	IDs  []string `json:"ids"`
}

// HeldKeys asks the node which keys it holds.
func (c *Client) HeldKeys(ctx context.Context) (HeldKeys, error) {
	return getJSON[HeldKeys](ctx, c, "/keys/held", nil)
}

// ForgetHeldKeys keeps these keys, and drops them from the list.
func (c *Client) ForgetHeldKeys(ctx context.Context) (HeldKeys, error) {
	return sendJSON[HeldKeys](ctx, c, http.MethodPost, "/keys/held/forget", struct{}{})
}

// MaxKeysOf bounds the ids of one KeysOfRequest.
const MaxKeysOf = 200

// KeysOfRequest is the body of POST /v1/keys/of.
type KeysOfRequest struct {
	IDs []string `json:"ids"` // 1 to MaxKeysOf
}

// Validate bounds the ids.
func (r KeysOfRequest) Validate() error {
	if len(r.IDs) == 0 || len(r.IDs) > MaxKeysOf {
		return Errorf(CodeInvalid, "", "1 to %d keys can be asked for at a time", MaxKeysOf)
	}
	return nil
}

// KeysOf is its answer: what the cluster has of these ids, deleted and denied keys among it.
type KeysOf struct {
	Rev  uint64      `json:"rev"`
	Keys []MinionKey `json:"keys"`
}

// KeysOf asks what the cluster has of some ids.
func (c *Client) KeysOf(ctx context.Context, r KeysOfRequest) (KeysOf, error) {
	return sendJSON[KeysOf](ctx, c, http.MethodPost, "/keys/of", r)
}

// Bounds of one PutKeysRequest.
const (
	MaxPut      = 64
	MaxPutBytes = 40 << 10 // of public keys, unless there is but one id
)

// PutKeysRequest is the body of POST /v1/keys/put: keys from elsewhere become the cluster's.
type PutKeysRequest struct {
	From string   `json:"from"` // where they come from, in the history
	Seen uint64   `json:"seen"` // the Rev of the KeysOf that they are based on
	Keys []PutKey `json:"keys"`
}

// PutKey is one of them.
type PutKey struct {
	ID      string `json:"id"`
	State   string `json:"state,omitempty"`  // KeyAccepted, KeyPending or KeyRejected; empty: only Denied counts
	Pub     string `json:"pub,omitempty"`    // with a state
	BaseRev uint64 `json:"base_rev"`         // of what the cluster has of this id, 0: nothing; anything else is refused
	Denied  string `json:"denied,omitempty"` // public key that is denied for this id from now on
}

// Validate bounds the keys, and refuses one of which nothing is said.
func (r PutKeysRequest) Validate() error {
	if len(r.Keys) == 0 || len(r.Keys) > MaxPut {
		return Errorf(CodeInvalid, "", "1 to %d keys can be put at a time", MaxPut)
	}
	for _, k := range r.Keys {
		switch k.State {
		case KeyAccepted, KeyPending, KeyRejected:
		case "":
			if k.Denied == "" || k.Pub != "" {
				return Errorf(CodeInvalid, "", "no key is given for %q", k.ID)
			}
		default:
			return Errorf(CodeInvalid, "", "a key can be put as accepted, pending or rejected, not %q", k.State)
		}
	}
	return nil
}

// PutKeys has the cluster take keys. A key that it had for an id and that gives way to another one is denied from then
// on.
func (c *Client) PutKeys(ctx context.Context, r PutKeysRequest) (DecidedKeys, error) {
	return sendJSON[DecidedKeys](ctx, c, http.MethodPost, "/keys/put", r)
}
