package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
)

// newClocks returns what compares this host's clock with those of the other members. It is made before the service.
func (m *member) newClocks() *clocks.Watch {
	return clocks.NewWatch(clocks.Config{
		Self: m.d.id, Log: m.Consensus, Wall: m.d.wall, Interval: m.d.clockInterval, Logger: m.log,
		Read: func(ctx context.Context, id node.ID) (clocks.Reading, error) {
			s, err := m.nodeStats(ctx, id)
			return clocks.Reading{Wall: s.Now, Serial: s.Serial}, err
		},
		Observe: func(serial hlc.Timestamp) error {
			if m.svc == nil {
				return nil
			}
			return m.svc.clock.Observe(serial)
		},
	})
}

// checkClock judges this host's clock.
func (d *Daemon) checkClock(context.Context) health.Result {
	if m := d.current(); m != nil {
		return m.clocks.Check()
	}
	return fine
}
