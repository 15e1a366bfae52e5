package handover

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func pairOf(t *testing.T) (a, b *Conn) {
	t.Helper()
	a, f, err := Pair()
	require.NoError(t, err)
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	_ = f.Close()
	require.NoError(t, err)
	if b, err = Inherit(uintptr(fd)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestMessagesOfEverySize(t *testing.T) {
	a, b := pairOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	for _, tt := range []struct{ size, descriptors int }{
		{0, 0}, {0, 1}, {100, 0}, {maxInline, maxBatch}, {maxInline + 1, 0}, {3 << 20, 1}, {10, 600}, {1 << 20, 601},
	} {
		payload := bytes.Repeat([]byte{7}, tt.size)
		fds := make([]int, tt.descriptors)
		for i := range fds {
			fds[i] = int(w.Fd())
		}
		sent := make(chan error, 1)
		go func() { sent <- a.Send(ctx, 5, payload, fds...) }()
		m, err := b.Receive(ctx)
		require.NoError(t, err, tt)
		require.NoError(t, <-sent, tt)
		if m.Kind != 5 || !bytes.Equal(m.Payload, payload) || len(m.Descriptors) != tt.descriptors {
			t.Errorf("%v: kind %d, %d bytes, %d descriptors", tt, m.Kind, len(m.Payload), len(m.Descriptors))
		}
		for _, fd := range m.Descriptors {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Fatalf("descriptor %d: flags %d, %v", fd, flags, err)
			}
		}
		m.Close()
	}
	_ = w.Close()
	if n, _ := r.Read(make([]byte, 1)); n != 0 { // would wait if a descriptor were left open
		t.Error("somebody wrote")
	}
}

func TestPair_TimeoutAndGone(t *testing.T) {
	a, b := pairOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := a.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
	_ = b.Close()
	if _, err := a.Receive(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("its end: %v", err)
	}
	if err := a.Send(t.Context(), 1, nil); !errors.Is(err, ErrGone) {
		t.Errorf("its end: %v", err)
	}
}

func TestMalformedMessages(t *testing.T) {
	for name, raw := range map[string][]byte{
		"short":  {1, 0},
		"length": append(make([]byte, 9), 5, 0, 0, 0, 0, 0, 0, 0, 0),
		"more":   append([]byte{1, flagMore}, make([]byte, 16)...),
		"parcel": append([]byte{1, flagParcel}, make([]byte, 16)...),
	} {
		a, b := pairOf(t)
		require.NoError(t, a.sendDatagram(raw))
		if _, err := b.Receive(t.Context()); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
