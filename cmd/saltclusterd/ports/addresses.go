package ports

import (
	"context"
	"errors"
	"slices"
	"time"

	"saltclusterd/backoff"
)

// addressesEvery is how often the addresses of this host are read. One may move here with a virtual router, while
// minions wait for it.
const addressesEvery = 2 * time.Second

// FollowAddresses keeps the ports on the addresses that this host has, where the option interface does not name them,
// until ctx ends.
func (p *Ports) FollowAddresses(ctx context.Context) {
	if len(p.cfg.Options.Edge.Interface) > 0 {
		return
	}
	f := addressFollower{addrs: p.addresses}
	f.pub, _ = f.addrs()
	f.again = true // the edges may have been made for others, a moment ago
	for backoff.Poll(ctx, addressesEvery) {
		switch changed, err := f.follow(ctx, p.Publish, p.Requests); {
		case err != nil && changed:
			p.cfg.Logger.Warn("cannot listen on all addresses of this host, trying again", "err", err)
		case changed:
			p.cfg.Logger.Info("addresses that are listened on changed", "addrs", f.pub)
		}
	}
}

// listensOn is an edge.
type listensOn interface {
	ListenOn(ctx context.Context, addrs []string) error
}

// addressFollower compares the addresses of this host with those that edges listen on.
type addressFollower struct {
	addrs func() (pub, req []string)
	pub   []string // as they were last
	again bool     // some could not be listened on
}

// follow makes the edges listen where they should. changed: the addresses are others than the last time.
func (f *addressFollower) follow(ctx context.Context, pub, req listensOn) (changed bool, err error) {
	atPub, atReq := f.addrs()
	if len(atPub) == 0 { // the system does not tell, or the host has lost its network for a moment
		return false, nil
	}
	if changed = !slices.Equal(atPub, f.pub); !changed && !f.again {
		return false, nil
	}
	f.pub = atPub
	err = errors.Join(pub.ListenOn(ctx, atPub), req.ListenOn(ctx, atReq))
	f.again = err != nil
	return changed, err
}
