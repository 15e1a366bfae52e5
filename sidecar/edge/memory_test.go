package edge

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

const testMemory = 1 << 20 // MaxMemory in these tests: 512 times less than by default

// begunRequest is a request of which only a part has come.
func begunRequest(announced, sent int) []byte {
	b := append(hello("REQ"), zmtp.AppendFrame(nil, nil, true)...)
	return append(zmtp.AppendFrameHeader(b, announced, false), make([]byte, sent)...)
}

// memoryPeer is how requests are sent and begun with one transport.
type memoryPeer struct {
	name  string
	open  func(net.Conn) (answers io.Reader, err error)
	begun func(announced, sent int) []byte // a request of which only a part is there
	whole func(body []byte) []byte
}

func memoryPeers() []memoryPeer {
	return []memoryPeer{
		{
			name: "zeromq",
			open: func(c net.Conn) (io.Reader, error) {
				_, err := c.Write(hello("REQ"))
				if err == nil {
					_, err = io.CopyN(io.Discard, c, int64(len(hello("ROUTER"))))
				}
				return c, err
			},
			begun: func(announced, sent int) []byte {
				b := zmtp.AppendFrameHeader(zmtp.AppendFrame(nil, nil, true), announced, false)
				return append(b, make([]byte, sent)...)
			},
			whole: func(body []byte) []byte { return zmtp.AppendMessage(nil, nil, body) },
		},
		{
			name: "tcp",
			open: func(c net.Conn) (io.Reader, error) { return c, nil },
			begun: func(announced, sent int) []byte {
				b := tcpFrame("1", saltwire.AppendBin(nil, make([]byte, announced)))
				return b[:len(b)-announced+sent]
			},
			whole: func(body []byte) []byte { return tcpFrame("1", saltwire.AppendBin(nil, body)) },
		},
		{
			name: "ws",
			open: shakeWS,
			begun: func(announced, sent int) []byte {
				b := wsFrame(ws.OpBinary, true, make([]byte, announced))
				return b[:len(b)-announced+sent]
			},
			whole: func(body []byte) []byte { return wsFrame(ws.OpBinary, true, body) },
		},
	}
}

// TestStrangersCannotHoldTheMemory lets strangers fill the memory in several ways, and wants the requests of a herd
// beside them answered.
func TestStrangersCannotHoldTheMemory(t *testing.T) {
	for _, p := range memoryPeers() {
		t.Run(p.name, func(t *testing.T) { testStrangersCannotHoldTheMemory(t, p) })
	}
}

func testStrangersCannotHoldTheMemory(t *testing.T, p memoryPeer) {
	const frame = 128 << 10
	for _, c := range []struct {
		name            string
		conns           int
		announced, sent int
		change          bool // the rest is filled up in small change
		proxied         bool // each connection is that of another address
	}{
		{name: "nearly whole frames", conns: 12, announced: frame, sent: frame - 8<<10, change: true},
		{name: "half of each frame", conns: 20, announced: frame, sent: frame/2 + 1, change: true},
		{name: "small frames", conns: 40, announced: 64 << 10, sent: 64<<10 - 1},
		{name: "many addresses", conns: 20, announced: frame, sent: frame - 1, proxied: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := ReqConfig{MaxMemory: testMemory, Limits: zmtp.Limits{MaxFrame: frame, MaxMessage: frame + 64}}
			if c.proxied {
				cfg.Proxies = loopback
			}
			e := openReq(t, cfg, echo)
			say := func(n int, b []byte) (net.Conn, io.Reader) { // it may be cut before it has said all
				conn := dialRaw(t, e)
				if c.proxied {
					_, _ = conn.Write(proxyHeader(n))
				}
				answers, err := p.open(conn)
				if err == nil {
					_, _ = conn.Write(b)
				}
				return conn, answers
			}
			for i := range c.conns {
				say(i, p.begun(c.announced, c.sent))
			}
			if c.change {
				for size := 1 << 10; size >= 16; size /= 2 {
					say(size, p.begun(size, 1))
				}
			}
			patience.WaitFor(t, "the memory is short", func() bool { return reasonCount(e.metrics, netconn.ReasonMemory) > 0 })
			answered := func(i, size int) bool {
				m, answers := say(1000+i, p.whole([]byte(strings.Repeat("x", size))))
				defer m.Close()
				_, err := io.CopyN(io.Discard, answers, int64(size))
				return err == nil
			}
			for i := range 20 {
				if !answered(i, 600) { // a return of test.ping
					t.Fatalf("minion %d is not answered; %d bytes used", i, e.Stats().Memory)
				}
			}
			patience.WaitFor(t, "a return as large as allowed is answered, if not at once", func() bool { return answered(20, frame) })
			if used := e.Stats().Memory; used > testMemory {
				t.Errorf("%d bytes are used", used)
			}
		})
	}
}

// TestStrangersCannotHoldTheAnswers lets strangers leave answers unread until there is no room for more, and wants a
// minion to get answers that no socket takes at once. A minion that reads nothing itself does not keep others from
// theirs.
func TestStrangersCannotHoldTheAnswers(t *testing.T) {
	const limit = 48 << 20 // several times an answer: who holds most is cut
	short, long := make([]byte, 1<<20), make([]byte, 16<<20)
	for name, minion := range map[string]string{"strangers": "", "another minion": "greedy"} {
		t.Run(name, func(t *testing.T) {
			e := openReq(t, ReqConfig{MaxUnread: limit, OutputTimeout: testTimeout}, func(r *Request) {
				switch string(r.Body) {
				case "honest":
					r.Authenticated("honest")
					r.Reply(long)
					return
				case "greedy":
					r.Authenticated("greedy")
				}
				r.Reply(short)
			})
			msg := zmtp.AppendMessage(nil, nil, []byte(minion))
			for range 60 {
				c := dialRaw(t, e)
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				b := hello("DEALER")
				for range 5 {
					b = append(b, msg...)
				}
				_, _ = c.Write(b)
			}
			patience.WaitFor(t, "no room is left", func() bool { return reasonCount(e.metrics, netconn.ReasonOutput) >= 10 })
			for i := range 5 {
				m := dialRaw(t, e)
				_, _ = m.Write(zmtp.AppendMessage(hello("REQ"), nil, []byte("honest")))
				if n, err := io.CopyN(io.Discard, m, int64(len(e.hello)+len(long))); err != nil {
					t.Fatalf("minion %d has %d bytes of its answer: %v", i, n, err)
				}
				m.Close()
			}
			if n := e.Stats().Unread; n > limit {
				t.Errorf("%d bytes are kept", n)
			}
		})
	}
}

// TestLingering wants unauthenticated requests that wait to leave most of the memory to others, and large ones less
// than small ones.
func TestLingering(t *testing.T) {
	asked := make(chan *Request, 1)
	e := openReq(t, ReqConfig{MaxMemory: testMemory}, func(r *Request) { asked <- r })
	c := dial(t, e, "DEALER")
	put := func(size int) *Request {
		require.NoError(t, c.WriteMessage(nil, make([]byte, size)))
		return <-asked
	}
	first, large, small := put(40<<10), put(40<<10), put(1<<10)
	once, again := first.Linger(), first.Linger()
	if !once || !again || large.Linger() || !small.Linger() {
		t.Error("not the large one is given up that there is no room for")
	}
	first.Authenticated("m")
	if !large.Linger() {
		t.Error("what an authenticated request has held is not free again")
	}
	for _, r := range []*Request{first, large, small} {
		r.Drop()
	}
	if n := e.mem.Unauthenticated(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// TestReqTimeout_SteadyAndTrickle wants a request that comes steadily to have more than MessageTimeout, by its bytes,
// and one that trickles not.
func TestReqTimeout_SteadyAndTrickle(t *testing.T) {
	const timeout = 400 * time.Millisecond
	e := openReq(t, ReqConfig{MessageTimeout: timeout}, echo)
	trickle := dialRaw(t, e)
	_, _ = trickle.Write(begunRequest(8<<20, 1))
	steady := dialRaw(t, e)
	sent := 2 << 20 // time enough for a test that has to wait for its processor
	_, _ = steady.Write(begunRequest(8<<20, sent))
	_, _ = io.CopyN(io.Discard, steady, int64(len(e.hello)))
	for began := time.Now(); sent < 8<<20; {
		piece := 64 << 10
		if time.Since(began) > 3*timeout {
			piece = 8<<20 - sent
		}
		if _, err := steady.Write(make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
		if sent += piece; sent < 6<<20 {
			time.Sleep(5 * time.Millisecond) // the pace of the peer
		}
		_, _ = trickle.Write([]byte{0})
	}
	if n, err := io.CopyN(io.Discard, steady, 8<<20); err != nil {
		t.Errorf("a steady request is cut: %d bytes, %v", n, err)
	}
	patience.WaitFor(t, "the trickle is cut", func() bool { return reasonCount(e.metrics, netconn.ReasonSlowMessage) == 1 })
}

// TestReqEnvelope_TooLarge wants no large frame where only an envelope belongs.
func TestReqEnvelope_TooLarge(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	c := dialRaw(t, e)
	_, _ = c.Write(zmtp.AppendFrameHeader(hello("DEALER"), maxEnvelope+1, true))
	ended(t, c)
	patience.WaitFor(t, "cut for its limit", func() bool { return reasonCount(e.metrics, netconn.ReasonLimit) == 1 })
}

func addrPort(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 4)
}

// proxyHeader is what a load balancer says of its n-th client.
func proxyHeader(n int) []byte {
	return fmt.Appendf(nil, "PROXY TCP4 %s 127.0.0.1 4 4506\r\n", addrPort(n).Addr())
}
