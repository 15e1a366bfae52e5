package eventbus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// stillBus is a master's pull socket that reads what the test reads.
type stillBus struct {
	t  *testing.T
	ln net.Listener
}

func startStillBus(t *testing.T, dir string) *stillBus {
	ln, err := net.Listen("unix", filepath.Join(dir, "master_event_pull.ipc"))
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return &stillBus{t, ln}
}

func (s *stillBus) accept() net.Conn {
	s.t.Helper()
	require.NoError(s.t, s.ln.(*net.UnixListener).SetDeadline(time.Now().Add(10*time.Second)))
	c, err := s.ln.Accept()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

// wants reads exactly these events, byte for byte.
func (s *stillBus) wants(c net.Conn, tags ...string) {
	s.t.Helper()
	for _, tag := range tags {
		want := appendFrame(nil, prefixed, tag, eventOf(tag))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			s.t.Fatalf("%.40q (%v), want the event %s", got, err, tag)
		}
	}
}

// eventOf is the data of an event, of which two make a piece.
func eventOf(tag string) []byte {
	return append([]byte("\xda\x3a\x98"), bytes.Repeat([]byte(tag), 15000/len(tag))...)
}

// six is enough for pieces of one event, and of two.
var six = []string{"t/a", "t/b", "t/c", "t/d", "t/e", "t/f"}

// TestBus_RefireUnread: a stalled master is given events, and their callers are told that it has them. It is killed
// before it reads any. The next master gets them all, in order and without another event being fired.
func TestBus_RefireUnread(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true, BackoffMax: 20 * time.Millisecond})
	master := startStillBus(t, dir)
	require.NoError(t, b.Open(t.Context()))
	defer b.Close()
	for i, tag := range six {
		require.NoError(t, b.FireTrimmed(t.Context(), tag, eventOf(tag)))
		patience.WaitFor(t, "the bus", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.flow.sent == uint64(i+1)
		})
	}
	master.accept().Close()
	master.wants(master.accept(), six...)
}

// TestBusKnowsWhatWasRead: of what a master that ends had been given, only what it had not read is fired again.
func TestBusKnowsWhatWasRead(t *testing.T) {
	for together := 1; together <= 2; together++ { // events in a piece
		for read := 0; read <= len(six); read += together {
			t.Run(fmt.Sprint(together, read), func(t *testing.T) {
				b, dir := busRig(t, Options{FireOnly: true})
				b.ctx = t.Context()
				master := startStillBus(t, dir)
				var p pull
				defer p.close()
				for left := six; len(left) > 0; left = left[together:] {
					write(t, b, &p, left[:together]...)
				}
				c := master.accept()
				master.wants(c, six[:read]...)
				if held, err := p.checkUnread(); err != nil || (held == 0) != (read == len(six)) {
					t.Fatalf("%d bytes are held: %v", held, err)
				}
				c.Close()
				// It may notice, or meet it when it writes.
				if read%4 == 0 {
					want := unix.ECONNRESET
					if _, err := p.checkUnread(); read < len(six) && !errors.Is(err, want) {
						t.Fatalf("the master has gone: %v, want %v", err, want)
					}
				}
				for err := errors.New("not yet"); err != nil; { // the first time tells that the master has gone
					_, err = b.writeEvents(&p, []queuedEvent{{tag: "t/z", data: eventOf("t/z")}})
				}
				master.wants(master.accept(), append(slices.Clone(six[read:]), "t/z")...)
			})
		}
	}
}

// TestBus_MasterStalled: what does not fit into the socket of a stalled master is written when it reads again, on the
// same connection, and nothing twice.
func TestBus_MasterStalled(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true})
	b.ctx, b.o.writeTimeout = t.Context(), 50*time.Millisecond
	master := startStillBus(t, dir)
	var p pull
	defer p.close()
	var took []string
	for n := 1; n == 1; {
		tag := fmt.Sprintf("t/%03d", len(took))
		var err error
		n, err = b.writeEvents(&p, []queuedEvent{{tag: tag, data: eventOf(tag)}})
		if (n == 1) != (err == nil) {
			t.Fatalf("%d written: %v", n, err)
		}
		if n == 1 {
			took = append(took, tag)
		}
	}
	c := master.accept()
	master.wants(c, took...)
	write(t, b, &p, "t/last")
	master.wants(c, "t/last")
}

// TestBus_CloseWhileMasterStalled: a write that waits for the master does not delay Close.
func TestBus_CloseWhileMasterStalled(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true, writeTimeout: time.Minute})
	startStillBus(t, dir)
	require.NoError(t, b.Open(t.Context()))
	for range 500 { // more than the socket takes
		require.NoError(t, b.FireTrimmed(t.Context(), "t/a", eventOf("t/a")))
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Close() }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the master to take what it has written")
	}
}

// TestPull_ResetReportedOnce: a master ends between a write and the check after it. The kernel reports that only once.
func TestPull_ResetReportedOnce(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true})
	b.ctx = t.Context()
	master := startStillBus(t, dir)
	var p pull
	defer p.close()
	write(t, b, &p, "t/a")
	master.accept().Close()
	events := []queuedEvent{{tag: "t/b", data: eventOf("t/b")}}
	if n, err := p.noteWritten(events, 1, 0); n != 0 || !errors.Is(err, unix.ECONNRESET) {
		t.Fatalf("%d are not to be written again: %v", n, err)
	}
	if n, err := b.writeEvents(&p, events); n != 1 || err != nil {
		t.Fatalf("%d written: %v", n, err)
	}
	master.wants(master.accept(), "t/a", "t/b")
}

func write(t *testing.T, b *Bus, p *pull, tags ...string) {
	t.Helper()
	var events []queuedEvent
	for _, tag := range tags {
		events = append(events, queuedEvent{tag: tag, data: eventOf(tag)})
	}
	if n, err := b.writeEvents(p, events); err != nil || n != len(events) {
		t.Fatalf("%d written: %v", n, err)
	}
}
