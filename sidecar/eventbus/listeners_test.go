package eventbus

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

func TestAwaitActors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus.ipc")
	b := &Bus{o: Options{FireOnly: true}, actors: 2, pub: endpoint{"unix", path}}
	b.AwaitActors(t.Context()) // nobody listens: what there is to wait for is not known
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer ln.Close()
	connect := func() {
		t.Helper()
		c, err := net.Dial("unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		s, err := ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
	}
	connect()
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if b.AwaitActors(short); short.Err() == nil {
		t.Error("one of two is there, and it does not wait")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.AwaitActors(t.Context())
	}()
	connect()
	<-done
	b.o.FireOnly = false
	short, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if b.AwaitActors(short); short.Err() == nil {
		t.Error("its own connection is missing, and it does not wait")
	}
	connect()
	b.AwaitActors(t.Context())
	(&Bus{pub: endpoint{"unix", path}}).AwaitActors(t.Context())
	(&Bus{actors: 9, pub: endpoint{"tcp", path}}).AwaitActors(t.Context())
}

func TestAccepted(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
00000000ec2465e2: 00000002 00000000 00010000 0001 01  1057 /run/salt/master_event_pub.ipc
00000000ec2465e3: 00000003 00000000 00000000 0001 03  1058 /run/salt/master_event_pub.ipc
00000000ec2465e4: 00000003 00000000 00000000 0001 03  1059
00000000ec2465e5: 00000003 00000000 00000000 0001 03  1060 /run/salt/master_event_pub.ipc2
00000000ec2465e6: 00000003 00000000 00000000 0001 03  1061 /run/salt/master_event_pub.ipc
`
	if n, listens := countAccepted([]byte(table), "/run/salt/master_event_pub.ipc"); n != 2 || !listens {
		t.Errorf("%d, %v", n, listens)
	}
	if n, listens := countAccepted([]byte(table), "/run/salt/other"); n != 0 || listens {
		t.Errorf("%d, %v", n, listens)
	}
}
