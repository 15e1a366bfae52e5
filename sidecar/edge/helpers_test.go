package edge

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

const testTimeout = 20 * time.Second

// handlerFunc is a ReqHandler of one function.
type handlerFunc func(*Request)

func (f handlerFunc) ServeReq(_ context.Context, r *Request) { f(r) }

func echo(r *Request) { r.Reply(r.Body) }

func openReq(t testing.TB, cfg ReqConfig, h func(*Request)) *ReqEdge {
	t.Helper()
	cfg.Addrs, cfg.Handler = []string{"127.0.0.1:0"}, handlerFunc(h)
	e, err := NewReqEdge(cfg)
	require.NoError(t, err)
	require.NoError(t, e.Open(context.Background()))
	t.Cleanup(func() {
		select {
		case <-e.Done(): // closed by the test
		default:
			check.NoError(t, e.Close())
		}
	})
	return e
}

func openPub(t testing.TB, cfg PubConfig) *PubEdge {
	t.Helper()
	cfg.Addrs = []string{"127.0.0.1:0"}
	orInt(&cfg.SignInTime, time.Nanosecond) // rotations begin at once
	e, err := NewPubEdge(cfg)
	require.NoError(t, err)
	require.NoError(t, e.Open(context.Background()))
	t.Cleanup(func() {
		select {
		case <-e.Done():
		default:
			check.NoError(t, e.Close())
		}
	})
	return e
}

// addressed is either edge.
type addressed interface{ Addr() []net.Addr }

// dialRaw is a TCP connection that has said nothing yet.
func dialRaw(t testing.TB, e addressed) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", e.Addr()[0].String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	return c
}

// dial is a peer that has shaken hands.
func dial(t *testing.T, e addressed, socketType string) *zmtp.Client {
	t.Helper()
	c, err := zmtp.NewClient(context.Background(), dialRaw(t, e), zmtp.ClientOptions{SocketType: socketType})
	require.NoError(t, err)
	return c
}

// hello is what a peer says until it has shaken hands.
func hello(socketType string) []byte {
	return zmtp.AppendReady(zmtp.AppendGreeting(nil), socketType, "")
}

// ended waits until the edge has closed a connection of the test.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(testTimeout))
	b := make([]byte, 64<<10)
	for {
		if _, err := c.Read(b); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("still open")
			}
			return
		}
	}
}

// refused wants an edge to let nobody more in.
func refused(t *testing.T, e addressed) {
	t.Helper()
	c, err := net.Dial("tcp", e.Addr()[0].String())
	if err == nil { // the reset may come before or after the dial returns
		defer c.Close()
		ended(t, c)
	}
}

// ask sends one request and wants it back.
func ask(t *testing.T, c *zmtp.Client, body string) {
	t.Helper()
	require.NoError(t, c.WriteMessage(nil, []byte(body)))
	parts, err := c.ReadMessage()
	if err != nil || len(parts) != 2 || string(parts[1]) != body {
		t.Fatalf("got %d parts, %v", len(parts), err)
	}
}

// metricValue reads a counter.
func metricValue(c prometheus.Metric) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return -1
	}
	return m.GetCounter().GetValue()
}

// gaugeValue reads a gauge.
func gaugeValue(g prometheus.Metric) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		return -1
	}
	return m.GetGauge().GetValue()
}

// dialAddr connects where an edge listens, or listened.
func dialAddr(e addressed) (net.Conn, error) { return net.Dial("tcp", e.Addr()[0].String()) }
