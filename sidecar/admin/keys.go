package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"saltclusterd/sidecar/adminapi"
)

// KeyKeeper knows and decides about minion keys.
type KeyKeeper interface {
	Keys(ctx context.Context, q adminapi.KeyQuery) (adminapi.Keys, error)
	DecideKeys(ctx context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error)
}

// KeyHolder restores accepted keys when too many of them are taken away on its host at once.
type KeyHolder interface {
	HeldKeys(ctx context.Context) (adminapi.HeldKeys, error)
	// ForgetHeldKeys keeps these keys, and returns what was held.
	ForgetHeldKeys(ctx context.Context) (adminapi.HeldKeys, error)
}

// maxKeys bounds a list.
const maxKeys = 20_000

func listKeys(ctx context.Context, k KeyKeeper, v url.Values) (adminapi.Keys, error) {
	n, err := strconv.Atoi(v.Get("limit"))
	if err != nil || n < 0 {
		return adminapi.Keys{}, adminapi.Errorf(adminapi.CodeInvalid, "", "the limit is not a number")
	}
	if n == 0 || n > maxKeys {
		n = maxKeys
	}
	return k.Keys(ctx, adminapi.KeyQuery{State: v.Get("state"), Match: v.Get("match"), ID: v.Get("id"),
		After: v.Get("after"), History: v.Get("history") != "", Limit: n})
}

// Keys are the verbs about the keys of minions.
func Keys(k KeyKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/keys", serveQuery(s, "keys", 0,
			func(ctx context.Context, r *http.Request) (adminapi.Keys, error) {
				return listKeys(ctx, k, r.URL.Query())
			}))
		mux.HandleFunc("POST /v1/keys", serveBody(s, "decide_keys", 0, k.DecideKeys))
	}
}

// HeldKeys are the verbs about keys that were taken away in numbers.
func HeldKeys(k KeyHolder) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/keys/held", serveRead(s, "held_keys", k.HeldKeys))
		mux.HandleFunc("POST /v1/keys/held/forget", serveRead(s, "forget_held_keys", k.ForgetHeldKeys))
	}
}
