package joining

import (
	"encoding/json"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// FuzzPayloads reads what the two sides of a join send each other after both have proved themselves.
func FuzzPayloads(f *testing.F) {
	w, err := json.Marshal(replyPayload{
		Version: replyVersion, UUID: "u", Private: []byte("pem"), Public: []byte("pub"), Rev: 3,
		GossipKeys: [][]byte{make([]byte, 32)},
		Members:    []node.Entry{{ID: "m1"}},
	})
	require.NoError(f, err)
	f.Add(w)
	f.Add([]byte(`{"witness":true}`))
	f.Add([]byte(`{"members":[{"Addr":"192.0.2.1:1"},null]}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parseRequestPayload(b); err == nil && len(b) > 0 && !json.Valid(b) {
			t.Fatalf("%q asks for %+v", b, p)
		}
		w, err := parseReplyPayload(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(w)
		require.NoError(t, err, "what was read cannot be written")
		if _, err := parseReplyPayload(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
