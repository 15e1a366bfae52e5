package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
)

// Two clusters of one name behind one load balancer would each be sure to be the right one. So whoever gives birth to one looks first
// whether a node that it knows of has its peer port open, which only members have, and those who are about to give birth: a port is
// opened before the look, and stays open until the member has it. Of several who are at it together, each sees one of the others, or
// is seen; the one with the lowest address goes on, and waits until the others have let go.

const (
	// neighbourWithin is how long a birth looks for a cluster that is there already.
	neighbourWithin = 2 * time.Second
	// claimWithin is how long the lowest of several that are at it waits for the others; who stays longer is a member.
	claimWithin = 3 * neighbourWithin
	claimLook   = 200 * time.Millisecond
)

// claimBirth refuses to give birth when one of the peers this node is configured to join belongs to a cluster, or is about to.
// release must be called when the birth has failed.
func (d *Daemon) claimBirth(ctx context.Context) (release func(), err error) {
	return d.claim(ctx, d.cfg.PeerAddresses(), func(addr string) error {
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl join "+addr+"; if that is another cluster, take it out of cluster_peers",
			"%s, one of cluster_peers, belongs to a cluster already, or founds one", addr)
	})
}

// claimRestore refuses to restore a cluster beside members of it. The restored one is of a later generation: who meets it steps down,
// a majority that is well, too.
func (d *Daemon) claimRestore(ctx context.Context, v state.View) (release func(), err error) {
	peers := d.cfg.PeerAddresses()
	for _, mem := range v.Members() {
		peers = append(peers, mem.Addr)
	}
	return d.claim(ctx, peers, func(addr string) error {
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl join "+addr+"; --force if that one is to be no member any more, or is of another cluster",
			"%s, which is a member in the snapshot or one of cluster_peers, belongs to a cluster", addr)
	})
}

// claim opens the peer port and returns when no other of peers has its own open.
func (d *Daemon) claim(ctx context.Context, peers []string, refusal func(addr string) error) (release func(), err error) {
	if len(peers) == 0 {
		return func() {}, nil
	}
	own, err := d.advertise()
	if err != nil {
		return nil, err
	}
	if err := d.sockets.reserve(ctx, "tcp", d.cfg.PeerListen()); err != nil {
		return nil, fmt.Errorf("open the peer port: %w", err)
	}
	release = func() { d.sockets.release("tcp", d.cfg.PeerListen()) }
	for patience := time.Now().Add(claimWithin); ; {
		there := neighbours(ctx, own, peers)
		if len(there) == 0 {
			return release, nil
		}
		lowest := !slices.ContainsFunc(there, func(n neighbour) bool { return n.at.Compare(own) < 0 })
		if !lowest || time.Now().After(patience) || !backoff.Sleep(ctx, claimLook) {
			release()
			return nil, errors.Join(context.Cause(ctx), refusal(there[0].addr))
		}
	}
}

// neighbour is a peer that has its port open.
type neighbour struct {
	addr string // as it is configured
	at   netip.AddrPort
}

// neighbours returns those of peers, but for this node itself, that have their port open.
func neighbours(ctx context.Context, own netip.AddrPort, peers []string) (there []neighbour) {
	ctx, cancel := context.WithTimeout(ctx, neighbourWithin)
	defer cancel()
	answers := make(chan neighbour, len(peers))
	for _, addr := range peers {
		go func() { // ends with ctx
			var dialer net.Dialer
			c, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				answers <- neighbour{}
				return
			}
			at := c.RemoteAddr().(*net.TCPAddr).AddrPort()
			at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
			_ = c.Close()
			if isOurs(at, own) {
				at = netip.AddrPort{}
			}
			answers <- neighbour{addr, at}
		}()
	}
	for range peers {
		if n := <-answers; n.at.IsValid() {
			there = append(there, n)
		}
	}
	slices.SortFunc(there, func(a, b neighbour) int { return a.at.Compare(b.at) })
	return there
}

// isOurs says whether at is this node: by the address it tells others, or by another one of this host, as its name often is.
func isOurs(at, own netip.AddrPort) bool {
	return at == own || at.Port() == own.Port() && (at.Addr().IsLoopback() || slices.Contains(localAddrs(), at.Addr()))
}
