package upstream

import "slices"

// connPool is the connections to the master.
type connPool struct {
	conns   map[*conn]struct{} // all
	idle    []*conn            // of the current epoch, the last used at the end
	epoch   uint64             // grows with each loss; connections of former epochs take no new calls
	fresh   int                // connections of the current epoch
	dialing int
	kept    int // connections that drain beyond DrainTimeout
}

// countPlaces counts the connections, those included that are being made.
func (p *connPool) countPlaces() int { return len(p.conns) + p.dialing }

// lastIdle takes the connection that was used last from those that idle.
func (p *connPool) lastIdle() *conn {
	n := len(p.idle) - 1
	cn := p.idle[n]
	p.idle = p.idle[:n]
	return cn
}

// forgetConn takes a connection out.
func (p *connPool) forgetConn(cn *conn) {
	delete(p.conns, cn)
	if cn.epoch == p.epoch {
		p.fresh--
	}
	if i := slices.Index(p.idle, cn); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
}

// beginEpoch closes what idles: the connections that there are take no new calls.
func (p *connPool) beginEpoch() {
	p.epoch++
	p.fresh = 0
	for _, old := range p.idle {
		old.close()
	}
	p.idle = nil
}
