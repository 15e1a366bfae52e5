//go:build integration

package scenario

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// acceptedSignIns counts the sign-ins that all nodes have answered "accepted" since they started.
func acceptedSignIns(t *testing.T, c *lab.Cluster) (n float64) {
	t.Helper()
	for _, node := range c.Nodes {
		n += metric(t, node, func(line string) bool {
			return strings.HasPrefix(line, `saltcluster_signin_requests_total{outcome="accepted`)
		})
	}
	return n
}

// metric adds up what a node says in the lines that are wanted.
func metric(t *testing.T, n *lab.Node, want func(line string) bool) (sum float64) {
	t.Helper()
	return metricAt(t, n, n.Addr, want)
}

// metricAt asks the node at one of its addresses.
func metricAt(t *testing.T, n *lab.Node, host string, want func(line string) bool) (sum float64) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.Dial(ctx, network, addr)
		},
	}}
	res, err := client.Get("http://" + net.JoinHostPort(host, "4580") + "/metrics")
	labtest.Must(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	labtest.Must(t, err)
	found := false
	for line := range strings.Lines(string(raw)) {
		if !want(line) {
			continue
		}
		found = true
		fields := strings.Fields(line)
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		labtest.Must(t, err)
		sum += v
	}
	if !found && !strings.Contains(string(raw), "saltcluster_") {
		t.Errorf("%s shows no metrics", n.Name)
	}
	return sum
}

// epochsBegun counts the rotations of the cluster's AES key that all nodes have logged.
func epochsBegun(t *testing.T, c *lab.Cluster) (n int) {
	t.Helper()
	for _, node := range c.Nodes {
		raw, err := os.ReadFile(node.Daemon.LogPath())
		labtest.Must(t, err)
		n += strings.Count(string(raw), "cluster AES key rotated")
	}
	return n
}
