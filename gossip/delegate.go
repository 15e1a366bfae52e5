package gossip

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/hashicorp/memberlist"

	"saltclusterd/gossip/node"
)

// delegate is what memberlist calls. It does so from within its protocol and under its lock, so nothing here waits for
// anything, and everything kept is copied.
type delegate struct{ g *Gossip }

var (
	errStranger = errors.New("it is not on the roster")
	errAddress  = errors.New("the roster has another address for it")
)

// NotifyAlive vetoes claims the roster does not back.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if n.Name == string(d.g.cfg.ID) {
		return nil // about us: memberlist refutes what is wrong
	}
	id, err := node.ParseID(n.Name)
	if err != nil {
		return err
	}
	e, ok := d.g.cfg.Roster.Lookup(id)
	if !ok {
		d.g.m.vetoed.Inc()
		return errStranger
	}
	if addrOf(n) != e.Addr {
		d.g.m.vetoed.Inc()
		return errAddress
	}
	if _, err := node.ParseMeta(n.Meta); err != nil {
		d.g.m.vetoed.Inc()
		return fmt.Errorf("its metadata: %w", err)
	}
	return nil
}

// NotifyJoin, NotifyUpdate and NotifyLeave note the events.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.noteMember(n, Alive) }

// NotifyUpdate: see NotifyJoin.
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.noteMember(n, Alive) }

// NotifyLeave: see NotifyJoin. memberlist does not tell a goodbye from a death here (Node.State is never set), so note
// goes by the last metadata.
func (d *delegate) NotifyLeave(n *memberlist.Node) { d.noteMember(n, Dead) }

func (d *delegate) noteMember(n *memberlist.Node, s State) {
	meta, err := node.ParseMeta(n.Meta)
	if err != nil {
		meta = node.Meta{} // refused by NotifyAlive before; nothing to tell
	}
	if s == Dead && meta.Draining {
		s = Left
	}
	d.g.table.setMember(Member{ID: node.ID(n.Name), Addr: addrOf(n), Meta: meta, State: s})
	d.g.Nudge()
}

// NodeMeta returns what this node tells about itself.
func (d *delegate) NodeMeta(int) []byte { return d.g.cfg.Meta().Append(nil) }

// NotifyMsg and the rest: we send no messages of our own by gossip.
func (*delegate) NotifyMsg([]byte) {}

// GetBroadcasts: none.
func (*delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState: none.
func (*delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState: ignored.
func (*delegate) MergeRemoteState([]byte, bool) {}

func addrOf(n *memberlist.Node) netip.AddrPort {
	ip, ok := netip.AddrFromSlice(n.Addr)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip.Unmap(), n.Port)
}
