package health

import (
	"fmt"
	"net"
	"testing"
)

// fakeConn comes from an address and knows whether it was closed.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", c.from)
	if err != nil {
		panic(err)
	}
	return a
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// Strangers who take all places do not keep out who has none yet, be it that they have a few addresses each, or all of
// a /64; nor does one who has taken all that an address may have keep out others of his /64.
func TestSomeStrangersLeaveAPlace(t *testing.T) {
	refused := map[string]int{}
	l := newLimited(nil, 12, 4, func(limit string) { refused[limit]++ })
	var all []*fakeConn
	enter := func(from string) (net.Conn, string) {
		c := &fakeConn{from: from}
		all = append(all, c)
		return l.admitConn(c)
	}
	for n := range 5 {
		if _, limit := enter("10.0.9.9:1"); (limit == "address") != (n == 4) {
			t.Errorf("connection %d of an address: %q", n, limit)
		}
	}
	for _, c := range all {
		l.forgetConn(c)
	}
	all = nil
	for n := range 4 {
		if _, limit := enter(fmt.Sprintf("[2001:db8::%d]:1", n+1)); limit != "" {
			t.Errorf("connection %d of a /64: %q", n, limit)
		}
	}
	for n := range 8 {
		if _, limit := enter(fmt.Sprintf("10.0.0.%d:1", n/4)); limit != "" {
			t.Errorf("connection %d: %q", n, limit)
		}
	}
	balancer, limit := enter("10.0.0.9:1")
	if limit != "" || len(l.open) != 12 || refused["total"] != 1 {
		t.Errorf("the load balancer is refused by %q, %d are open, refused: %v", limit, len(l.open), refused)
	}
	if !all[0].closed {
		t.Error("it was not the oldest that had to go")
	}
	for n := range 7 { // until only one has two
		enter(fmt.Sprintf("10.0.1.%d:1", n))
	}
	if _, limit := enter("10.0.2.1:1"); limit != "" {
		t.Errorf("while somebody has two: %q", limit)
	}
	for n := range 12 {
		enter(fmt.Sprintf("10.0.3.%d:1", n))
	}
	if _, limit := enter("10.0.4.1:1"); limit != "total" || len(l.open) != 12 {
		t.Errorf("when everybody has one: %q, %d are open", limit, len(l.open))
	}
	if balancer.(*countedConn).Conn.(*fakeConn).closed {
		t.Error("the load balancer's only connection was closed")
	}
	for _, c := range all {
		l.forgetConn(c)
	}
	if len(l.open) != 0 || len(l.counts) != 0 || len(l.groups) != 0 {
		t.Errorf("%d are open in the end, of %v, %v", len(l.open), l.counts, l.groups)
	}
}
