package edge

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"
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
			eventually(t, "three", func() bool { return len(e.all()) == 3 })
			for _, c := range e.all() {
				var got [4]int
				for i, o := range keepAliveOptions {
					got[i], _ = unix.GetsockoptInt(c.fd, o.level, o.name)
				}
				if fmt.Sprint(got) != "[1 60 15 3]" {
					t.Errorf("%v", got)
				}
			}
		})
	}
}
