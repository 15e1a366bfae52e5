package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestBarrier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer c.Close()
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { done <- awaitBarrier(ctx, path) }()
	b, rights := make([]byte, 100), make([]byte, 100)
	n, nr, _, _, err := c.ReadMsgUnix(b, rights)
	if err != nil || string(b[:n]) != "BARRIER=1" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	m, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil || len(m) != 1 {
		t.Fatal(m, err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	require.NoError(t, err)
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	check.NoError(t, <-done)
	check.NoError(t, awaitBarrier(ctx, ""))
}
