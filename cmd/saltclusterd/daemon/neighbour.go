package daemon

import (
	"context"
	"net"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// neighbourWithin is how long a birth looks for a cluster that is there already.
const neighbourWithin = 2 * time.Second

// noNeighbours refuses to give birth when one of the peers this node is configured to join has its peer port open, which
// only members have: somebody has run bootstrap there, and two clusters of one name behind one load balancer would each be sure
// to be the right one.
func (d *Daemon) noNeighbours(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, neighbourWithin)
	defer cancel()
	own, err := d.advertise()
	if err != nil {
		return err
	}
	peers := d.cfg.PeerAddresses()
	answers := make(chan string, len(peers))
	for _, addr := range peers {
		go func() { // ends with ctx
			var dialer net.Dialer
			c, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil || c.RemoteAddr().String() == own.String() {
				addr = ""
			}
			if err == nil {
				_ = c.Close()
			}
			answers <- addr
		}()
	}
	for range peers {
		if addr := <-answers; addr != "" {
			return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl join "+addr+"; if that is another cluster, take it out of cluster_peers",
				"%s, one of cluster_peers, belongs to a cluster already", addr)
		}
	}
	return nil
}
