package edge

import (
	"errors"
	"fmt"
	"net/netip"

	"saltclusterd/sidecar/proxyproto"
)

// herald waits for the header of a load balancer, which comes before anything
// of the peer itself. It is the reader's.
type herald struct {
	door *door
	buf  []byte
}

// introduced takes input until the load balancer has said for whom it speaks,
// and returns what is the peer's own.
func (l *link) introduced(in []byte) ([]byte, error) {
	if l.herald == nil {
		return in, nil
	}
	b := append(l.herald.buf, in...)
	h, n, err := proxyproto.Parse(b)
	if errors.Is(err, proxyproto.ErrShort) {
		l.herald.buf = b
		return nil, nil
	}
	if err != nil {
		return nil, &cutError{ReasonProxyHeader, fmt.Sprintf("%v from %s", err, l.remote.Addr())}
	}
	d := l.herald.door
	l.herald = nil
	if h.Source.IsValid() {
		l.remote = h.Source
	}
	if r := d.name(l.remote.Addr()); r != reasonNone {
		return nil, &cutError{r, "too many connections of one address"}
	}
	l.counted = l.remote.Addr()
	return b[n:], nil
}

// unnamed is where connections are counted whose true address is not known
// yet.
var unnamed netip.Addr

// heralded says whether connections from a must begin with a header.
func (d *door) heralded(a netip.Addr) bool {
	for _, p := range d.proxies {
		if p.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// name moves a connection from the unnamed ones to those of its true address.
func (d *door) name(a netip.Addr) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.maxPerAddr > 0 && d.perAddr[a] >= d.maxPerAddr {
		return ReasonAddrFull
	}
	d.uncount(unnamed)
	d.perAddr[a]++
	return reasonNone
}
