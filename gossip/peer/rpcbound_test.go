package peer

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// What a member can have kept by asking and asking is bounded: by connections, and by what stands before a body.
func TestRPC_BoundsPerMember(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", nil)
	b := m.member("b", func(c *Config) {
		c.Limits.RPCConnsPerNode = 2
		c.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	})
	echo(t, b, ProtoRaft)
	ask := func(conn net.Conn, header string) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tr := &http.Transport{
			Protocols: onlyHTTP2(), HTTP2: http2Config(),
			DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		}
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://b/", nil)
		require.NoError(t, err)
		req.Header.Set("Header", header)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := ask(dial(t, a, "b", ProtoHTTP), strings.Repeat("x", rpcMaxHeader/2)); err != nil ||
		status != http.StatusOK {
		t.Errorf("a large header: %d, %v", status, err)
	}
	if status, err := ask(dial(t, a, "b", ProtoHTTP), strings.Repeat("x", 2*rpcMaxHeader)); err == nil &&
		status == http.StatusOK {
		t.Error("a header that is too large is taken")
	}
	patience.WaitSettled(t, func() string {
		if _, admitted := b.reg.countConns(); admitted != 0 {
			return "connections that were closed have their places"
		}
		return ""
	})
	for n := range 2 {
		dial(t, a, "b", ProtoHTTP)
		patience.WaitSettled(t, func() string {
			if _, admitted := b.reg.countConns(); admitted <= n {
				return "a connection within the limit is not admitted"
			}
			return ""
		})
	}
	if status, err := ask(dial(t, a, "b", ProtoHTTP), ""); err == nil {
		t.Errorf("a third connection is answered: %d", status)
	}
	check.NoError(t, works(dial(t, a, "b", ProtoRaft)), "raft beside them")
}
