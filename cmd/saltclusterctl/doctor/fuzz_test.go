package doctor

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// wire is a connection on which certain bytes come, so many at a time.
type wire struct {
	net.Conn
	rest   []byte
	step   int
	closed bool
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, w.rest[:min(w.step, len(w.rest))])
	w.rest = w.rest[n:]
	return n, nil
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

// What stands behind doctor's probes may be anything. However its bytes are cut, the same ones pass, and where a frame
// is too large nothing does any more.
func FuzzBounded(f *testing.F) {
	greeting := append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3}, make([]byte, greetingSize-11)...)
	f.Add(append(bytes.Clone(greeting), 4, 5, 5, 'R', 'E', 'A', 'D'), 1)
	f.Add(append(bytes.Clone(greeting), 2, 0, 0, 0, 0, 1, 0, 0, 0, 1), 7)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 64)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		step = max(1, step%128)
		pass := func(step int) ([]byte, error, bool) {
			w := &wire{rest: data, step: step}
			b := newBounded(w)
			var got []byte
			buf := make([]byte, step)
			for {
				n, err := b.Read(buf)
				got = append(got, buf[:n]...)
				if err != nil {
					return got, err, w.closed
				}
			}
		}
		one, err1, closed1 := pass(1)
		many, err2, closed2 := pass(step)
		if err1 != err2 || closed1 != closed2 || closed1 != (err1 == errFrame) || !bytes.HasPrefix(one, many) {
			t.Fatalf("by one: %d bytes, %v, closed %v; by %d: %d bytes, %v, closed %v", len(one), err1, closed1, step, len(many),
				err2, closed2)
		}
		if err1 == io.EOF && !bytes.Equal(one, data) {
			t.Fatalf("%d of %d bytes passed", len(one), len(data))
		}
	})
}

func FuzzReadSockets(f *testing.F) {
	f.Add([]byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1199 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 25847 1 0000000000000000 100 0 0 10 0\n"))
	f.Add([]byte("0: 00000000000000000000000000000000:119A 0:0 0A 0 0 0 0 0 7"))
	f.Fuzz(func(t *testing.T, table []byte) {
		found := map[string]Listener{}
		readSockets(bytes.NewReader(table), []int{4505, 4506}, found)
		for inode, l := range found {
			if p := l.Addr.Port(); inode == "" || !l.Addr.IsValid() || p != 4505 && p != 4506 {
				t.Fatalf("%q: %v", inode, l)
			}
		}
	})
}
