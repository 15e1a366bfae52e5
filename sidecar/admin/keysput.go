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

func (s *Server) keysOf(k KeyTaker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.KeysOfRequest
		e := decodeBody(w, r, &req)
		if e == nil && (len(req.IDs) == 0 || len(req.IDs) > adminapi.MaxKeysOf) {
			e = adminapi.Errorf(adminapi.CodeInvalid, "", "a question is about 1 to %d keys", adminapi.MaxKeysOf)
		}
		if e != nil {
			s.writeError(w, "keys_of", e)
			return
		}
		writeAnswer(s, w, r, "keys_of", func(ctx context.Context) (adminapi.KeysOf, error) { return k.KeysOf(ctx, req) })
	}
}

func (s *Server) putKeys(k KeyTaker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req adminapi.PutKeysRequest
		e := decodeBody(w, r, &req)
		if e == nil {
			e = checkPut(req)
		}
		if e != nil {
			s.writeError(w, "put_keys", e)
			return
		}
		writeAnswer(s, w, r, "put_keys", func(ctx context.Context) (adminapi.DecidedKeys, error) { return k.PutKeys(ctx, req) })
	}
}

func checkPut(r adminapi.PutKeysRequest) *adminapi.Error {
	if len(r.Keys) == 0 || len(r.Keys) > adminapi.MaxPut {
		return adminapi.Errorf(adminapi.CodeInvalid, "", "1 to %d keys can be put at a time", adminapi.MaxPut)
	}
	for _, k := range r.Keys {
		switch k.State {
		case adminapi.KeyAccepted, adminapi.KeyPending, adminapi.KeyRejected:
		case "":
			if k.Denied == "" || k.Pub != "" {
				return adminapi.Errorf(adminapi.CodeInvalid, "", "nothing is said of %q", k.ID)
			}
		default:
			return adminapi.Errorf(adminapi.CodeInvalid, "", "a key can be put as accepted, pending or rejected, not %q",
				k.State)
		}
	}
	return nil
}

// KeyTransfer are the verbs by which keys are merged.
func KeyTransfer(k KeyTaker) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/keys/of", s.keysOf(k))
		mux.HandleFunc("POST /v1/keys/put", s.putKeys(k))
	}
}
