package daemon

import (
	"context"
	"os"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/router"
)

// The events by which a stock master tells who is present (salt/master.py Maintenance.handle_presence), fired on one master only, for
// reactors are to run once.
const (
	tagPresent        = "salt/presence/present"
	tagPresenceChange = "salt/presence/change"
)

// leastPresenceInterval keeps a loop_interval of nothing from filling the bus.
const leastPresenceInterval = time.Second

// wantsPresenceEvents says whether this node is to fire them when it is its turn. With auto that is what the salt-master's own configuration
// says; its drop-in makes the master itself keep quiet. A master that is not quiet must not be joined in.
func wantsPresenceEvents(cfg *config.Config, master *localmaster.Config) (bool, error) {
	switch cfg.Events.Presence {
	case config.PresenceOn:
		return true, nil
	case config.PresenceOff:
		return false, nil
	}
	if master.Bool("presence_events") {
		return false, nil
	}
	path, err := master.DropInPath()
	if err != nil {
		return false, nil // it has none
	}
	text, err := os.ReadFile(path)
	if err != nil || !localmaster.IsDropIn(text) {
		return false, nil
	}
	bare, err := localmaster.LoadConfigAfter(master.Path, master.Version, localmaster.Changes{path: nil})
	if err != nil {
		return false, err
	}
	return bare.Bool("presence_events"), nil
}

// teller is the node that fires: the leader, or when its master cannot (a witness has none) the first one that can.
func teller(v router.View) node.ID {
	first := node.ID("")
	for _, n := range v.Nodes {
		switch {
		case !n.Usable():
		case n.ID == v.Leader:
			return n.ID
		case first == "" || n.ID < first:
			first = n.ID
		}
	}
	return first
}

// firePresence tells who is present as often as a stock master does, while it is this node's to tell.
func (s *service) firePresence(ctx context.Context) {
	d := s.m.d
	wants, err := wantsPresenceEvents(d.cfg, d.master)
	if err != nil {
		d.log.Warn("presence events are off: the master's configuration cannot be read", "err", err)
	}
	if !wants {
		return
	}
	every := max(time.Duration(d.master.Int("loop_interval"))*time.Second, leastPresenceInterval)
	for backoff.Sleep(ctx, every) {
		st := s.m.cons.Status()
		if !st.HasQuorum || teller(s.m.routes()) != d.id || !s.bus.Takes() {
			continue
		}
		s.presence.look(ctx)
		turn, ok := s.presence.take(st.Term)
		if !ok {
			continue
		}
		for _, e := range presenceEvents(turn) {
			if err := s.bus.Fire(ctx, e.tag, e.data); err != nil && ctx.Err() == nil {
				d.log.Warn("event not fired", "reason", e.tag, "err", err)
			}
		}
	}
}

// take is this node's turn. There is none while a node that lives does not say whom it sees: its minions would be lost.
func (k *presenceKeeper) take(term uint64) (presence.Turn, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.s.m.routes().Nodes {
		if n.Alive && slices.Contains(k.missing, n.ID) {
			return presence.Turn{}, false
		}
	}
	before := k.tracker.Told()
	turn := k.tracker.Take(term, time.Now())
	if after := k.tracker.Told(); after.Newer(before) {
		k.store(after)
	}
	return turn, true
}

type presenceEvent struct {
	tag  string
	data map[string]any
}

// presenceEvents are the events of a turn, in the order and the shape of a stock master's.
func presenceEvents(t presence.Turn) (out []presenceEvent) {
	if len(t.New)+len(t.Lost) > 0 {
		out = append(out, presenceEvent{tagPresenceChange, map[string]any{"new": t.New, "lost": t.Lost}})
	}
	return append(out, presenceEvent{tagPresent, map[string]any{"present": t.Present}})
}
