package herd

import (
	"math"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Parts of a message of ZeroMQ besides what is in it: the empty frame before a request and before its reply, and what
// stands before a frame of more than 255 bytes.
const (
	delimiter = 2
	longFrame = 9
	frame     = 2
)

// TestSizesOfTheModel: integration/scale has the sizes of what minions really send and get.
func TestSizesOfTheModel(t *testing.T) {
	key, err := saltcrypt.NewKey()
	require.NoError(t, err)
	c := &Credentials{by: &Identity{ID: "web-0012.example", Enc: "OAEP-SHA1", Sig: "PKCS1v15-SHA1",
		tok: make([]byte, 256)}, session: saltcrypt.NewCrypticle(key)}
	p := &publication{jid: "20261123195330123456", fun: "test.ping", user: "root", masterID: "m1"}
	body, nonce, err := c.Request("_return", p.answer())
	require.NoError(t, err)
	reply := c.session.Seal(nil, []byte(nonce+"\xc3"), nil) // True
	costs := scale.MeasuredCosts()
	for _, s := range []struct {
		name       string
		model, got int
	}{
		{"ReturnBytes", costs.ReturnBytes, delimiter + longFrame + len(body)},
		{"AckBytes", costs.AckBytes, delimiter + frame + len(strings.Repeat(".", 3)) + len(reply)},
	} {
		t.Logf("%s: %d", s.name, s.got)
		if math.Abs(float64(s.model-s.got)) > 0.05*float64(s.got) {
			t.Errorf("%s is %d, measured %d", s.name, s.model, s.got)
		}
	}
}
