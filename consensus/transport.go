package consensus

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// maxPool is how many idle raft connections per peer are kept.
const maxPool = 3

// stream lets raft's transport use the Port. Raft addresses are node ids.
type stream struct {
	net.Listener
	port Port
	self node.ID
}

// Addr is what raft takes for its own address.
func (s stream) Addr() net.Addr { return nodeAddr(s.self) }

// Dial implements raft.StreamLayer.
func (s stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.port.Dial(ctx, node.ID(to), Proto)
}

type nodeAddr node.ID

func (nodeAddr) Network() string  { return Proto }
func (a nodeAddr) String() string { return string(a) }

func addrOf(id node.ID) raft.ServerAddress { return raft.ServerAddress(id) }
