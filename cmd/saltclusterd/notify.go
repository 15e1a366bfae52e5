package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendNotify sends one sd_notify(3) datagram; an empty socket path means that systemd does not listen.
func sendNotify(socket, state string) error {
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// awaitBarrier returns when systemd has taken in everything that was sent before (sd_notify_barrier(3)): it gets the
// end of a pipe and closes it.
func awaitBarrier(ctx context.Context, socket string) error {
	if socket == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer r.Close()
	// Package net sends no descriptors over a connected datagram socket.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Sendmsg(fd, []byte("BARRIER=1"), unix.UnixRights(int(w.Fd())), &unix.SockaddrUnix{Name: socket}, 0)
		_ = unix.Close(fd)
	}
	_ = w.Close()
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	deadline, _ := ctx.Deadline()
	_ = r.SetReadDeadline(deadline)
	if _, err := r.Read(make([]byte, 1)); os.IsTimeout(err) {
		return fmt.Errorf("systemd is slow: %w", err)
	}
	return nil
}
