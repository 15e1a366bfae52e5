package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/durable"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/missedjobs"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

// publishAsMaster listens where minions of the local master would subscribe.
func publishAsMaster(t *testing.T, n *testNode) {
	t.Helper()
	l, err := net.Listen("tcp", n.master.PubAddr())
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() { // by now t.Context has ended
		_ = l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { readSubscriptions(t.Context(), conn) })
		}
	})
}

// readSubscriptions reads what a subscriber says until ctx ends.
func readSubscriptions(ctx context.Context, conn net.Conn) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Close()
	})
	c, err := zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: "PUB"})
	for err == nil {
		_, err = c.ReadMessage()
	}
	if stop() {
		_ = conn.Close()
		return
	}
	<-closed
}

// numberOf returns the value of a counter of a member.
func numberOf(t *testing.T, n *testNode, name string) (value float64) {
	t.Helper()
	families, err := n.reg.Current().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestMissedJobs_PublishedOnConnection: a job that the master gave while this node was not subscribed to it is published
// once it is.
func TestMissedJobs_PublishedOnConnection(t *testing.T) {
	t.Parallel()
	const counter = "saltcluster_master_republished_jobs_total"
	dir := t.TempDir()
	for _, sub := range []string{"run", "master.d"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o750))
	}
	write(t, filepath.Join(dir, "master.d/own.conf"), "timeout: 300\n", 0o600) // a job waits for its minions as long
	seen := missedjobs.NewLedger(filepath.Join(dir, "run/seen-jobs"), durable.BootID(), func() time.Time {
		return time.Now().Add(-time.Hour) // an earlier process knew since then what was published
	})
	require.NoError(t, seen.Open())
	require.NoError(t, seen.Close())
	n := startNode(t, "m1", dir)
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	jid := time.Now().UTC().Format("20060102150405") + "000001"
	load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": "*",
		"tgt_type": "glob", "jid": jid, "ret": ""}, saltwire.Disk)
	require.NoError(t, err)
	job := filepath.Join(n.master.CacheDir, "jobs", "01", jid)
	require.NoError(t, os.MkdirAll(job, 0o755))
	write(t, filepath.Join(job, ".load.p"), string(load), 0o600)
	if got := numberOf(t, n, counter); got != 0 {
		t.Errorf("%v published without a subscription", got)
	}
	publishAsMaster(t, n)
	eventually(t, "the job to be published", func() error {
		if got := numberOf(t, n, counter); got != 1 {
			return fmt.Errorf("%v published", got)
		}
		return nil
	})
}
