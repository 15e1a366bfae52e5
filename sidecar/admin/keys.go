package admin

import (
	"context"
	"net/http"
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

func (s *Server) serveKeys(k KeyKeeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := r.URL.Query()
		q := adminapi.KeyQuery{
			State: v.Get("state"), Match: v.Get("match"), ID: v.Get("id"), After: v.Get("after"),
			History: v.Get("history") != "",
		}
		writeAnswer(s, w, r, "keys", func(ctx context.Context) (adminapi.Keys, error) {
			n, err := strconv.Atoi(v.Get("limit"))
			if err != nil || n < 0 {
				return adminapi.Keys{}, adminapi.Errorf(adminapi.CodeInvalid, "", "the limit is not a number")
			}
			if q.Limit = n; n == 0 || n > maxKeys {
				q.Limit = maxKeys
			}
			return k.Keys(ctx, q)
		})
	}
}

func (s *Server) decideKeys(k KeyKeeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.DecideKeysRequest
		e := decodeBody(w, r, &req)
		switch {
		case e != nil:
		case len(req.IDs) == 0 || len(req.IDs) > adminapi.MaxDecided:
			e = adminapi.Errorf(adminapi.CodeInvalid, "", "a decision is about 1 to %d keys", adminapi.MaxDecided)
		case req.State != adminapi.KeyAccepted && req.State != adminapi.KeyRejected && req.State != adminapi.KeyDeleted:
			e = adminapi.Errorf(adminapi.CodeInvalid, "", "a key can be accepted, rejected or deleted, not %q", req.State)
		}
		if e != nil {
			s.writeError(w, "decide_keys", e)
			return
		}
		writeAnswer(s, w, r, "decide_keys", func(ctx context.Context) (adminapi.DecidedKeys, error) {
			return k.DecideKeys(ctx, req)
		})
	}
}

// Keys are the verbs about the keys of minions.
func Keys(k KeyKeeper) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/keys", s.serveKeys(k))
		mux.HandleFunc("POST /v1/keys", s.decideKeys(k))
	}
}

// HeldKeys are the verbs about keys that were taken away in numbers.
func HeldKeys(k KeyHolder) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/keys/held", serveRead(s, "held_keys", k.HeldKeys))
		mux.HandleFunc("POST /v1/keys/held/forget", serveRead(s, "forget_held_keys", k.ForgetHeldKeys))
	}
}
