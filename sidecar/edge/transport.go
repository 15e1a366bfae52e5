package edge

import (
	"crypto/tls"
	"fmt"
	"slices"

	"saltclusterd/sidecar/edge/front"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/saltwire/wsframe"
	"saltclusterd/sidecar/zmtp"
)

// Transport is what a minion speaks, as its option `transport` names it.
type Transport uint8

// The transports that an edge serves.
const (
	ZeroMQ Transport = iota
	TCP
	WS
	transports
)

var transportNames = [transports]string{"zeromq", "tcp", "ws"}

func (t Transport) String() string { return transportNames[t] }

// TransportNamed returns the transport of a name; false: none is served that has it.
func TransportNamed(name string) (Transport, bool) {
	i := slices.Index(transportNames[:], name)
	return Transport(max(i, 0)), i >= 0
}

// Served is what minions may speak.
type Served struct {
	Transports []Transport // nil: all
	// RequireTLS refuses peers that begin with anything but TLS.
	RequireTLS bool
	// TLS is asked for each connection that begins with TLS, inside of which is any transport but zeromq. nil, or one
	// that returns nil: such a connection is cut.
	TLS func() *tls.Config
	// Turns are those of TLS handshakes. nil: the edge has its own.
	Turns *front.Turns
}

// refusal returns why a transport is not served, nil if it is. secured: inside of TLS.
func (s *Served) refusal(t Transport, secured bool) error {
	switch {
	case s.Transports != nil && !slices.Contains(s.Transports, t):
		return netconn.NewError(netconn.ReasonProtocol, fmt.Sprintf("the peer speaks %s, which cluster_transports leaves out", t))
	case s.RequireTLS && !secured:
		return netconn.NewError(netconn.ReasonProtocol,
			fmt.Sprintf("the peer speaks %s without TLS, which cluster_require_tls refuses", t))
	}
	return nil
}

// openings tell by the first byte what a peer speaks. Those with a text are not served.
var openings = []struct {
	first     byte
	transport Transport
	refused   string
}{
	{first: 0xff, transport: ZeroMQ},
	{first: tcpframe.FirstByte, transport: TCP},
	{first: front.FirstByte, refused: "the peer speaks TLS, which is not served: its minion has the option ssl"},
	{first: wsframe.FirstByte, transport: WS},
}

// diverts tells whether a connection with this first byte is the front's, which terminates TLS.
func diverts(c *netconn.Conn, first byte, f *front.Front) bool {
	return first == front.FirstByte && !c.IsSecured() && f.Serves()
}

// transportOf returns what a peer speaks whose first byte this is.
func transportOf(c *netconn.Conn, first byte, served *Served) (Transport, error) {
	for _, o := range openings {
		switch {
		case o.first != first:
			continue
		case c.IsSecured() && o.transport == ZeroMQ:
			return 0, netconn.NewError(netconn.ReasonProtocol, fmt.Sprintf("first byte %#02x inside TLS", first))
		case o.refused != "":
			return 0, netconn.NewError(netconn.ReasonProtocol, o.refused)
		}
		return o.transport, served.refusal(o.transport, c.IsSecured())
	}
	return 0, netconn.NewError(netconn.ReasonProtocol, fmt.Sprintf("first byte %#02x: not a transport of Salt", first))
}

// encoding is how publications look in a transport.
type encoding struct {
	size   func(body []byte) int
	append func(dst, body []byte) []byte
	// topics: subscribers tell topics, and one that filters gets each publication behind its topic. Otherwise all follow
	// the feed.
	topics bool
	// named: subscribers may name their minion. Publications for some minions are not in the feed then, but put in
	// between.
	named bool
}

var encodings = [transports]encoding{
	ZeroMQ: {
		size:   func(body []byte) int { return zmtp.MessageSize(body) },
		append: func(dst, body []byte) []byte { return zmtp.AppendFrame(dst, body, false) },
		topics: true,
	},
	TCP: {size: tcpframe.PublicationSize, append: tcpframe.AppendPublication, named: true},
	WS:  {size: wsframe.PublicationSize, append: wsframe.AppendPublication},
}

// message encodes a publication that stands in no feed.
func (e *encoding) message(body []byte) *chunk { return fixed(e.append(nil, body)) }

// topicFrame is what stands before a publication for a subscriber that filters.
func topicFrame(topic string) []byte { return zmtp.AppendFrame(nil, []byte(topic), true) }
