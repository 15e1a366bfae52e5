//go:build integration

package scenario

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// greeting of ZMTP 3.1, NULL mechanism, as a client that means well begins.
var greeting = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL"), make([]byte, 48)...)

// Bytes from someone who means no good, to every port of every node, while everyone else goes on working.
func testHostile(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	stop := pinging(ctx, c.Nodes[0], c.IDs())
	lb := c.LB.Host()
	random := rand.New(rand.NewPCG(1, 2))
	garbage := make([]byte, 64<<10)
	for i := range garbage {
		garbage[i] = byte(random.Uint32())
	}
	ready := append(append([]byte(nil), greeting...),
		"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ\x08Identity\x00\x00\x00\x00"...)
	attacks := map[string][]byte{
		"silence":             nil,
		"garbage":             garbage,
		"half a greeting":     greeting[:20],
		"a greeting, no more": greeting,
		"a frame of 2^62":     append(append([]byte(nil), ready...), 0x02, 0x40, 0, 0, 0, 0, 0, 0, 0),
		"more, more, more":    append(append([]byte(nil), ready...), make([]byte, 40_000)...),
		"plain http":          []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	}
	for i := 0; i < 40_000; i += 2 { // frames of no bytes, each with the flag "more follows"
		attacks["more, more, more"][len(ready)+i] = 1
	}
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for _, n := range c.Nodes {
		for _, port := range []string{"4505", "4506", "4520"} {
			for _, bytes := range attacks {
				for range 5 {
					conn, err := dial(ctx, lb, net.JoinHostPort(n.Addr, port))
					labtest.Must(t, err)
					open = append(open, conn)
					_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
					_, _ = conn.Write(bytes) // being cut off early is a good answer
				}
			}
		}
	}
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
	rounds, failures := stop()
	if len(failures) > 0 {
		t.Errorf("%d of %d rounds of test.ping failed: %v", len(failures), rounds, failures)
	}
	for _, n := range c.Nodes {
		if !n.Daemon.Running() || !n.Master.Running() {
			t.Errorf("%s: saltclusterd runs: %t, salt-master runs: %t", n.Name, n.Daemon.Running(), n.Master.Running())
		}
	}
}

func dial(ctx context.Context, h *lab.Host, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return h.Dial(ctx, "tcp", addr)
}
