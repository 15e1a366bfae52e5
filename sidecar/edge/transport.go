package edge

import (
	"fmt"
	"slices"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/zmtp"
)

// Transport is what a minion speaks, as its option `transport` names it.
type Transport uint8

// The transports that an edge serves.
const (
	ZeroMQ Transport = iota
	TCP
	transports
)

var transportNames = [transports]string{"zeromq", "tcp"}

func (t Transport) String() string { return transportNames[t] }

// TransportNamed returns the transport of a name; false: none is served that has it.
func TransportNamed(name string) (Transport, bool) {
	i := slices.Index(transportNames[:], name)
	return Transport(max(i, 0)), i >= 0
}

// openings tell by the first byte what a peer speaks. Those with a text are not served.
var openings = []struct {
	first     byte
	transport Transport
	refused   string
}{
	{first: 0xff, transport: ZeroMQ},
	{first: tcpframe.FirstByte, transport: TCP},
	{first: 0x16, refused: "the peer speaks TLS, which is not served: its minion has the option ssl"},
	{first: 'G', refused: "the peer speaks HTTP, which is not served: its minion has transport: ws"},
}

// transportOf returns what a peer speaks whose first byte this is. allowed lists what is served; nil: all.
func transportOf(first byte, allowed []Transport) (Transport, error) {
	for _, o := range openings {
		switch {
		case o.first != first:
			continue
		case o.refused != "":
			return 0, netconn.NewError(netconn.ReasonProtocol, o.refused)
		case allowed != nil && !slices.Contains(allowed, o.transport):
			return 0, netconn.NewError(netconn.ReasonProtocol,
				fmt.Sprintf("the peer speaks %s, which cluster_transports leaves out", o.transport))
		}
		return o.transport, nil
	}
	return 0, netconn.NewError(netconn.ReasonProtocol, fmt.Sprintf("first byte %#02x: no transport of Salt's", first))
}

// encoding is how publications look in a transport.
type encoding struct {
	size   func(body []byte) int
	append func(dst, body []byte) []byte
	// topics: subscribers tell topics, and one that filters gets each publication behind its topic. Otherwise all follow
	// the feed of what is for all minions, and what is for some is put in between.
	topics bool
}

var encodings = [transports]encoding{
	ZeroMQ: {
		size:   func(body []byte) int { return zmtp.MessageSize(body) },
		append: func(dst, body []byte) []byte { return zmtp.AppendFrame(dst, body, false) },
		topics: true,
	},
	TCP: {size: tcpframe.PublicationSize, append: tcpframe.AppendPublication},
}

// message encodes a publication that stands in no feed.
func (e *encoding) message(body []byte) *chunk { return fixed(e.append(nil, body)) }

// topicFrame is what stands before a publication for a subscriber that filters.
func topicFrame(topic string) []byte { return zmtp.AppendFrame(nil, []byte(topic), true) }
