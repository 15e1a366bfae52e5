package edge

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// reasonCount reads how many connections ended for a reason.
func reasonCount(m *metrics, r netconn.Reason) int { return int(metricValue(m.Endings(r))) }

// hostile is what a peer may send; each must be cut for the reason given.
var hostile = []struct {
	name   string
	say    []byte
	reason netconn.Reason
}{
	{"silence", nil, netconn.ReasonHandshake},
	{"http", []byte("GET / HTTP/1.1\r\n\r\n"), netconn.ReasonProtocol},
	{"zeros", make([]byte, 4096), netconn.ReasonProtocol},
	{"old zmtp", []byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1}, netconn.ReasonProtocol},
	{"curve", append(zmtp.AppendGreeting(nil)[:12], "CURVE"...), netconn.ReasonProtocol},
	{"half a greeting", zmtp.AppendGreeting(nil)[:30], netconn.ReasonHandshake},
	{"no ready", zmtp.AppendGreeting(nil), netconn.ReasonHandshake},
	{"half a ready", hello("REQ")[:80], netconn.ReasonHandshake},
	{"wrong socket type", hello("PUSH"), netconn.ReasonProtocol},
	{"broken ready", zmtp.AppendCommand(zmtp.AppendGreeting(nil), zmtp.CmdReady, []byte{200}), netconn.ReasonProtocol},
	{"data before ready", zmtp.AppendMessage(zmtp.AppendGreeting(nil), []byte("x")), netconn.ReasonProtocol},
	{"huge command", append(zmtp.AppendGreeting(nil), 6, 0x40, 0, 0, 0, 0, 0, 0, 0), netconn.ReasonLimit},
}

func TestHostileHandshakes(t *testing.T) {
	re := openReq(t, ReqConfig{HandshakeTimeout: 200 * time.Millisecond}, echo)
	pe := openPub(t, PubConfig{HandshakeTimeout: 200 * time.Millisecond})
	good := dial(t, re, "REQ")
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			for name, e := range map[string]addressed{"req": re, "pub": pe} {
				m := re.metrics
				if name == "pub" {
					m = pe.metrics
				}
				before := reasonCount(m, h.reason)
				c := dialRaw(t, e)
				_, _ = c.Write(h.say)
				ended(t, c)
				patience.WaitFor(t, name+" counts "+h.reason.String(), func() bool { return reasonCount(m, h.reason) == before+1 })
			}
			ask(t, good, "undisturbed")
		})
	}
}

func TestHostileRequests(t *testing.T) {
	e := openReq(t, ReqConfig{MessageTimeout: 300 * time.Millisecond, Limits: zmtp.Limits{MaxFrame: 1 << 20}}, echo)
	good := dial(t, e, "REQ")
	for _, h := range []struct {
		name   string
		say    []byte
		reason netconn.Reason
	}{
		{"2^62 frame", []byte{2, 0x40, 0, 0, 0, 0, 0, 0, 0}, netconn.ReasonLimit},
		{"2^64-1 frame", []byte{2, 255, 255, 255, 255, 255, 255, 255, 255}, netconn.ReasonLimit},
		{"bad flags", []byte{0xf0, 0}, netconn.ReasonProtocol},
		{"no delimiter", zmtp.AppendMessage(nil, []byte("body")), netconn.ReasonProtocol},
		{"only a delimiter", zmtp.AppendMessage(nil, nil), netconn.ReasonProtocol},
		{"two bodies", zmtp.AppendMessage(nil, nil, []byte("a"), []byte("b")), netconn.ReasonProtocol},
		{"long envelope", zmtp.AppendMessage(nil, make([]byte, 9000), nil, nil), netconn.ReasonLimit},
		{"command inside a message", zmtp.AppendPing([]byte{1, 0}, 0, nil), netconn.ReasonProtocol},
		{"broken command", []byte{4, 1, 9}, netconn.ReasonProtocol},
		{"broken ping", zmtp.AppendCommand(nil, zmtp.CmdPing, nil), netconn.ReasonProtocol},
		{"half a request", []byte{1, 0, 0, 100, 'x'}, netconn.ReasonSlowMessage},
		{"half a header", []byte{1, 0, 2, 0, 0}, netconn.ReasonSlowMessage},
		{"half a message", []byte{1, 0}, netconn.ReasonSlowMessage},
		{"slow large frame", []byte{1, 0, 2, 0, 0, 0, 0, 0, 15, 0, 0}, netconn.ReasonSlowMessage},
	} {
		t.Run(h.name, func(t *testing.T) {
			before := reasonCount(e.metrics, h.reason)
			c := dialRaw(t, e)
			_, _ = c.Write(append(hello("REQ"), h.say...))
			ended(t, c)
			patience.WaitFor(t, "counted "+h.reason.String(), func() bool { return reasonCount(e.metrics, h.reason) == before+1 })
			ask(t, good, "undisturbed")
			patience.WaitFor(t, "no memory held", func() bool { return e.Stats().Memory == 0 })
		})
	}
}

// TestHostileEndlessMore sends frames with MORE for ever.
func TestHostileEndlessMore(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	good := dial(t, e, "REQ")
	c := dialRaw(t, e)
	_, err := c.Write(hello("DEALER"))
	for frame := zmtp.AppendFrame(nil, []byte("x"), true); err == nil; {
		_, err = c.Write(frame)
	}
	patience.WaitFor(t, "cut for its limit", func() bool { return reasonCount(e.metrics, netconn.ReasonLimit) == 1 })
	ask(t, good, "undisturbed")
}

// TestHostileManyAnnouncements opens many connections which each announce the
// largest frame allowed and send a little of it.
func TestHostileManyAnnouncements(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 100
	for range n {
		c := dialRaw(t, e)
		if _, err := c.Write(append(hello("REQ"), 1, 0, 2, 0, 0, 0, 0, 4, 0, 0, 0, 'x')); err != nil {
			t.Fatal(err)
		}
	}
	patience.WaitFor(t, "all have begun", func() bool { return e.Stats().Memory > 0 })
	patience.WaitFor(t, "all are counted", func() bool { return e.Stats().Memory >= n*1024 })
	if held := e.Stats().Memory; held > n*8<<10 {
		t.Fatalf("%d connections hold %d bytes", n, held)
	}
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+64<<20 {
		t.Fatalf("heap grew from %d to %d", before.HeapAlloc, after.HeapAlloc)
	}
	ask(t, dial(t, e, "REQ"), "undisturbed")
}

// TestHostileMemoryIsShared wants the one who asks for too much to be cut
// when the common memory is used up.
func TestHostileMemoryIsShared(t *testing.T) {
	e := openReq(t, ReqConfig{MaxMemory: 1 << 20}, echo)
	c := dialRaw(t, e)
	_, err := c.Write(append(hello("REQ"), 1, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0))
	for block := make([]byte, 64<<10); err == nil; {
		_, err = c.Write(block)
	}
	patience.WaitFor(t, "cut for memory", func() bool { return reasonCount(e.metrics, netconn.ReasonMemory) == 1 && e.Stats().Memory == 0 })
	ask(t, dial(t, e, "REQ"), "undisturbed")
}

// TestHostileNeverReads sends requests and never reads the answers.
func TestHostileNeverReads(t *testing.T) {
	for name, cfg := range map[string]ReqConfig{
		"too much": {MaxOutput: 1 << 20, OutputTimeout: testTimeout},
		"too long": {OutputTimeout: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			e := openReq(t, cfg, echo)
			good := dial(t, e, "REQ")
			c := dialRaw(t, e)
			_, err := c.Write(hello("DEALER"))
			for msg := zmtp.AppendMessage(nil, nil, make([]byte, 100<<10)); err == nil; {
				_, err = c.Write(msg)
			}
			if errors.Is(err, syscall.ETIMEDOUT) {
				t.Fatal(err)
			}
			patience.WaitFor(t, "cut for its output", func() bool { return reasonCount(e.metrics, netconn.ReasonOutput) == 1 })
			patience.WaitFor(t, "nothing is kept", func() bool {
				s := e.Stats()
				return s.Writers == 0 && s.Memory == 0 && s.Unread == 0 && s.Conns == 1
			})
			ask(t, good, "undisturbed")
		})
	}
}

// TestHostileManyNeverRead keeps below every limit of a connection, on many of them.
func TestHostileManyNeverRead(t *testing.T) {
	const size, limit = 1 << 20, 8 << 20
	answer := make([]byte, size)
	e := openReq(t, ReqConfig{MaxUnread: limit, OutputTimeout: testTimeout}, func(r *Request) { r.Reply(answer) })
	good := dial(t, e, "REQ")
	for range 40 {
		c := dialRaw(t, e)
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		msg := append(hello("DEALER"), zmtp.AppendMessage(nil, nil, []byte("ask"))...)
		for range 8 {
			msg = zmtp.AppendMessage(msg, nil, []byte("ask"))
		}
		if _, err := c.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	patience.WaitFor(t, "cut for its output", func() bool { return reasonCount(e.metrics, netconn.ReasonOutput) >= 10 })
	if n := e.Stats().Unread; n > limit {
		t.Errorf("%d bytes are kept", n)
	}
	require.NoError(t, good.WriteMessage(nil, []byte("x")))
	if parts, err := good.ReadMessage(); err != nil || len(parts[1]) != size {
		t.Errorf("who reads is not answered: %v", err)
	}
}

// TestSlowReaderGetsEverything reads its answers late, but does.
func TestSlowReaderGetsEverything(t *testing.T) {
	e := openReq(t, ReqConfig{MaxOutput: 64 << 20}, echo)
	c := dialRaw(t, e)
	const n, size = 100, 300 << 10
	msg := zmtp.AppendMessage(nil, nil, make([]byte, size))
	go func() {
		_, _ = c.Write(hello("DEALER"))
		for range n {
			_, _ = c.Write(msg)
		}
	}()
	patience.WaitFor(t, "its socket is full", func() bool { return e.Stats().Writers == 1 })
	want := int64(len(e.hello) + n*len(msg))
	if got, err := io.CopyN(io.Discard, c, want); got != want {
		t.Fatalf("%d of %d: %v", got, want, err)
	}
}

func TestIdleTimeout(t *testing.T) {
	e := openReq(t, ReqConfig{IdleTimeout: 50 * time.Millisecond}, echo)
	c := dial(t, e, "REQ")
	if _, err := c.ReadMessage(); err == nil {
		t.Fatal("an answer to nothing")
	}
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonIdle) == 1 })
}

// TestIdleConnectionMemory wants an idle connection to cost no buffer.
func TestIdleConnectionMemory(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	pe := openPub(t, PubConfig{})
	const n = 400
	for name, join := range map[string]func() net.Conn{
		"req": func() net.Conn {
			c := dialRaw(t, e)
			_, _ = c.Write(zmtp.AppendMessage(hello("REQ"), nil, []byte("x")))
			_, _ = io.CopyN(io.Discard, c, int64(len(e.hello)+5))
			return c
		},
		"pub": func() net.Conn {
			c := dialRaw(t, pe)
			_, _ = c.Write(zmtp.AppendSubscribe(hello("SUB"), nil))
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			used := func() uint64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc + m.StackInuse
			}
			before := used()
			conns := make([]net.Conn, n)
			for i := range conns {
				conns[i] = join()
			}
			patience.WaitFor(t, "all are in", func() bool { return name == "req" || pe.Stats().Subscribers == n })
			if per := int64(used()-before) / n; per > 40<<10 { // the test's own half included
				t.Fatalf("%d bytes per idle connection", per)
			} else {
				t.Logf("%d bytes per idle connection, both ends", per)
			}
		})
	}
}
