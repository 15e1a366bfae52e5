package netconn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// header is what a load balancer says in front of a peer with this address.
func header(addr string) string { return fmt.Sprintf("PROXY TCP4 %s 10.0.0.1 4711 4506\r\n", addr) }

// FuzzAfterProxyHeader feeds a connection that must be introduced with what comes, cut anywhere.
func FuzzAfterProxyHeader(f *testing.F) {
	f.Add([]byte(header("192.0.2.1")), 3)
	f.Add(append([]byte(header("192.0.2.1")), "\xff\x00"...), 40)
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"), 12)
	f.Add([]byte("PROXY UNKNOWN\r\n\xff"), 1)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		cut = min(max(cut, 0), len(in))
		d := &Listener{places: newPlaces(2, 0), inside: 1}
		d.places.add(unnamed)
		l := &Conn{header: &proxyHeader{listener: d}, remote: netip.MustParseAddrPort("127.0.0.1:1")}
		var own []byte
		for _, part := range [][]byte{in[:cut], in[cut:]} {
			rest, err := l.AfterProxyHeader(part)
			if err != nil {
				return
			}
			own = append(own, rest...)
		}
		if l.header == nil && (!strings.HasSuffix(string(in), string(own)) || d.places.byAddr[l.counted] != 1 ||
			!l.remote.IsValid()) {
			t.Fatalf("%q left of %q, remote %s", own, in, l.remote)
		}
		if l.header != nil && len(own) > 0 {
			t.Fatal("bytes of a peer that nobody has introduced")
		}
	})
}
