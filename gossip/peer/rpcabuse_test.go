package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// The frames of HTTP/2 that a hostile member writes by hand (RFC 9113).
const (
	frameHeaders, frameReset, frameSettings, framePing, frameContinuation = 1, 3, 4, 6, 9

	endStream, endHeaders = 1, 4
)

func frame(dst []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	return append(binary.BigEndian.AppendUint32(dst, stream), payload...)
}

// asks is the header of a GET of / of b.
var asks = []byte{0x82, 0x87, 0x84, 0x41, 1, 'b'}

// ended asks for a sign of life behind all that was written, and says whether the connection ended instead.
func ended(t *testing.T, conn net.Conn) bool {
	t.Helper()
	mark := []byte("the end!")
	_ = conn.SetDeadline(time.Now().Add(4 * testTimeout)) // 100,000 requests under the race detector take half of one
	if _, err := conn.Write(frame(nil, framePing, 0, 0, mark)); err != nil {
		return true
	}
	buf, kept := make([]byte, 1<<16), []byte{}
	for !bytes.Contains(kept, mark) {
		n, err := conn.Read(buf)
		if isTimeout(err) {
			t.Error("no sign of life")
		}
		if err != nil {
			return true
		}
		kept = append(kept[max(0, len(kept)-len(mark)):], buf[:n]...)
	}
	return false
}

// A member that knows HTTP/2 too well costs one connection: requests that are taken back as soon as they are made, a
// header without an end, one that is small until it is unpacked, answers that it does not read. Others are answered
// meanwhile.
func TestRPC_HTTP2Abuse(t *testing.T) {
	const enough = 96 << 20 // bytes; more than any two sockets hold
	for _, c := range []struct {
		name  string
		abuse func(write func([]byte) bool)
		cut   bool // it has to end by itself
	}{
		{"requests taken back", func(write func([]byte) bool) {
			code := make([]byte, 4)
			var out []byte
			for stream := uint32(1); stream < 200_000; stream += 2 {
				out = frame(out, frameHeaders, endStream|endHeaders, stream, asks)
				out = frame(out, frameReset, 0, stream, code)
				if len(out) > 1<<16 {
					if !write(out) {
						return
					}
					out = out[:0]
				}
			}
		}, false},
		{"a header without an end", func(write func([]byte) bool) {
			if !write(frame(nil, frameHeaders, endStream, 1, asks)) {
				return
			}
			more := append([]byte{0, 1, 'x', 0x7f, 0x80, 0x7e}, bytes.Repeat([]byte{'y'}, 127+16128)...) // x: yyy…
			for write(frame(nil, frameContinuation, 0, 1, more)) {
			}
		}, true},
		{"a small header that is large", func(write func([]byte) bool) {
			// kept as the first of the table
			entry := append([]byte{0x40, 1, 'x', 0x7f, 0xa1, 0x1e}, bytes.Repeat([]byte{'y'}, 127+3873)...)
			header := append(append([]byte{}, asks...), entry...)
			header = append(header, bytes.Repeat([]byte{0xbe}, 10_000)...)
			for stream := uint32(1); stream < 4_000; stream += 2 {
				if !write(frame(nil, frameHeaders, endStream|endHeaders, stream, header)) {
					return
				}
			}
		}, false},
		{"answers that it does not read", func(write func([]byte) bool) {
			ping := bytes.Repeat(frame(nil, framePing, 0, 0, make([]byte, 8)), 4096)
			for write(ping) {
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now, most atomic.Int64
			m := newMesh(t)
			hostile, honest := m.member("a", nil), m.member("c", nil)
			m.member("b", func(c *Config) {
				c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if id, _ := FromContext(r.Context()); id != "a" {
						return
					}
					n := now.Add(1)
					defer now.Add(-1)
					for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
					}
					<-r.Context().Done()
				})
			})
			conn := dial(t, hostile, "b", ProtoHTTP)
			if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+string(frame(nil, frameSettings, 0, 0,
				nil))); err != nil {
				t.Fatal(err)
			}
			written, cut := 0, false
			c.abuse(func(p []byte) bool {
				_ = conn.SetWriteDeadline(time.Now().Add(testTimeout))
				n, err := conn.Write(p)
				written += n
				cut = err != nil && !isTimeout(err)
				if isTimeout(err) {
					t.Errorf("%d bytes written, and it is neither read nor cut", written)
				}
				return err == nil && written < enough
			})
			if !cut {
				cut = ended(t, conn)
			}
			t.Logf("%d bytes written, cut: %t, %d requests served at once", written, cut, most.Load())
			if c.cut && !cut {
				t.Errorf("%d bytes were taken", written)
			}
			if n := most.Load(); n > rpcStreams {
				t.Errorf("%d requests were served at once", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://b/", nil)
			require.NoError(t, err)
			resp, err := honest.HTTPClient().Do(req)
			require.NoError(t, err, "another member")
			_ = resp.Body.Close()
			_ = conn.Close()
			patience.WaitSettled(t, func() string {
				if now.Load() != 0 {
					return "requests of a connection that is gone are under way"
				}
				return ""
			})
		})
	}
}
