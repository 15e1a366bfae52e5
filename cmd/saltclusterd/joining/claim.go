package joining

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
)

// Two clusters of one name behind one load balancer must not come into being. A node that founds one first checks
// whether the peer port of a configured peer is open. Only members have it open, and nodes that are founding a cluster:
// a node opens its port before the check and keeps it open until its membership has it. So of several nodes that do
// this at the same time, each sees another one or is seen. The one with the lowest address waits until the others have
// closed theirs, and founds the cluster.

const (
	// dialTimeout is how long a check waits for peers.
	dialTimeout = 2 * time.Second
	// claimTimeout is how long the node with the lowest address waits for the others. A port that is open longer
	// belongs to a member.
	claimTimeout  = 3 * dialTimeout
	claimInterval = 200 * time.Millisecond
)

// claimFounding refuses to found a cluster if a configured peer belongs to one, or founds one. The caller releases the
// peer port when it fails.
func (j *Joiner) claimFounding(ctx context.Context) (release func(), err error) {
	return j.claim(ctx, j.cfg.Options.PeerAddresses(), func(addr string) error {
		return adminapi.Errorf(adminapi.CodeRefused,
			"saltclusterctl join "+addr+"; if that is another cluster, remove it from cluster_peers",
			"%s, one of cluster_peers, already belongs to a cluster, or is creating one", addr)
	})
}

// ClaimRestore refuses to restore a cluster beside members of it. The restored one has a later generation, at which
// members step down, even a healthy majority. The caller releases the peer port when it fails.
func (j *Joiner) ClaimRestore(ctx context.Context, v state.View) (release func(), err error) {
	peers := j.cfg.Options.PeerAddresses()
	for _, mem := range v.Members() {
		peers = append(peers, mem.Addr)
	}
	return j.claim(ctx, peers, func(addr string) error {
		return adminapi.Errorf(adminapi.CodeRefused,
			"saltclusterctl join "+addr+"; or add --force if that node is to leave, or belongs to another cluster",
			"%s, which is a member in the snapshot or one of cluster_peers, belongs to a cluster", addr)
	})
}

// claim opens the peer port and returns when no peer has its own port open.
func (j *Joiner) claim(
	ctx context.Context, peers []string, refusal func(addr string) error,
) (release func(), err error) {
	if len(peers) == 0 {
		return func() {}, nil
	}
	own, err := j.cfg.Advertise()
	if err != nil {
		return nil, err
	}
	port := j.cfg.Options.PeerListen()
	if err := j.cfg.Ports.Reserve(ctx, "tcp", port); err != nil {
		return nil, fmt.Errorf("open the peer port: %w", err)
	}
	release = func() { j.cfg.Ports.Release("tcp", port) }
	for deadline := time.Now().Add(claimTimeout); ; {
		open := j.findOpenPeers(ctx, own, peers)
		if len(open) == 0 {
			return release, nil
		}
		lowest := own.Compare(open[0].at) <= 0
		if !lowest || time.Now().After(deadline) || !backoff.Sleep(ctx, claimInterval) {
			release()
			return nil, errors.Join(context.Cause(ctx), refusal(open[0].addr))
		}
	}
}

// openPeer is a peer that has its peer port open.
type openPeer struct {
	addr string // as configured
	at   netip.AddrPort
}

// findOpenPeers returns the peers that have their port open, without this node, by their addresses.
func (j *Joiner) findOpenPeers(ctx context.Context, own netip.AddrPort, peers []string) []openPeer {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found := make([]openPeer, len(peers))
	var wg sync.WaitGroup
	for i, addr := range peers {
		wg.Go(func() {
			var dialer net.Dialer
			c, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				return
			}
			at, err := netip.ParseAddrPort(c.RemoteAddr().String())
			_ = c.Close()
			at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
			if err == nil && !j.isSelf(at, own) {
				found[i] = openPeer{addr, at}
			}
		})
	}
	wg.Wait()
	found = slices.DeleteFunc(found, func(p openPeer) bool { return !p.at.IsValid() })
	slices.SortFunc(found, func(a, b openPeer) int { return a.at.Compare(b.at) })
	return found
}

// isSelf compares an address with the advertised one of this node, and with the other addresses of this host, which its
// name may resolve to.
func (j *Joiner) isSelf(at, own netip.AddrPort) bool {
	return at == own ||
		at.Port() == own.Port() && (at.Addr().IsLoopback() || slices.Contains(j.cfg.LocalAddrs(), at.Addr()))
}
