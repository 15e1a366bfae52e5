package edge

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/patience"
)

// TestKeepAlive: each connection is kept alive as a stock master's is, the first and later ones, whoever has made the
// listener.
func TestKeepAlive(t *testing.T) {
	for name, listen := range map[string]*net.ListenConfig{
		"the edge's own": nil, "one that sets nothing": {KeepAlive: -1}, "one that sets its own": {},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := ReqConfig{}
			if listen != nil {
				cfg.Listen = listen.Listen
			}
			e := openReq(t, cfg, echo)
			for range 3 {
				dialRaw(t, e)
			}
			patience.WaitFor(t, "three", func() bool { return e.conns.Len() == 3 })
			for _, c := range e.conns.All() {
				var got [4]int
				c.Mu.Lock()
				for i, o := range [][2]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
					{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT}} {
					got[i], _ = unix.GetsockoptInt(c.Descriptor(), o[0], o[1])
				}
				c.Mu.Unlock()
				if fmt.Sprint(got) != "[1 60 15 3]" {
					t.Errorf("%v", got)
				}
			}
		})
	}
}
