package minionview

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

// The events about presence of a stock master (salt/master.py Maintenance.handle_presence). One node of the cluster
// fires them, so that reactors run once.
const (
	tagPresent        = "salt/presence/present"
	tagPresenceChange = "salt/presence/change"
)

// minEventInterval keeps a loop_interval of zero from filling the bus.
const minEventInterval = time.Second

// fireEvents fires the events as often as a stock master does, whenever this node is the one to fire them.
func (p *Presence) fireEvents(ctx context.Context) {
	log := p.cfg.Logger
	wants, err := wantsEvents(p.cfg.PresenceEvents, p.cfg.Master)
	if err != nil {
		log.Warn("presence events are off: the master's configuration cannot be read", "err", err)
	}
	if !wants {
		return
	}
	interval := max(time.Duration(p.cfg.Master.Int("loop_interval"))*time.Second, minEventInterval)
	for backoff.Sleep(ctx, interval) {
		term, quorum := p.cfg.Term()
		if !quorum || chooseFiringNode(p.cfg.Routes()) != p.cfg.Self || !p.cfg.Bus.Takes() {
			continue
		}
		p.refresh(ctx)
		turn, ok := p.takeTurn(term)
		if !ok {
			continue
		}
		for _, e := range makeEvents(turn) {
			if err := p.cfg.Bus.Fire(ctx, e.tag, e.data); err != nil && ctx.Err() == nil {
				log.Warn("event not fired", "reason", e.tag, "err", err)
			}
		}
	}
}

// wantsEvents reports whether this node fires the events when it is chosen. With config.PresenceAuto it does if the
// master's own configuration asks for them and the drop-in keeps the master from firing them itself.
func wantsEvents(option string, master *localmaster.Config) (bool, error) {
	switch option {
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

// chooseFiringNode returns the node that fires: the leader, or, if it has no master that can, the first node by id that
// has one.
func chooseFiringNode(v router.View) node.ID {
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

// takeTurn returns what to fire now. ok is false while a live node does not report, because its minions would be lost.
// Its mark is on disk when takeTurn returns.
func (p *Presence) takeTurn(term uint64) (turn presence.Turn, ok bool) {
	turn, newer, ok := p.nextTurn(term)
	if newer {
		p.storeMark()
	}
	return turn, ok
}

// nextTurn is takeTurn without the disk. newer: there is a newer mark to store.
func (p *Presence) nextTurn(term uint64) (turn presence.Turn, newer, ok bool) {
	routes := p.cfg.Routes()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range routes.Nodes {
		if n.Alive && slices.Contains(p.missing, n.ID) {
			return presence.Turn{}, false, false
		}
	}
	before := p.tracker.Told()
	turn = p.tracker.Take(term, time.Now())
	return turn, p.tracker.Told().Newer(before), true
}

type event struct {
	tag  string
	data map[string]any
}

// makeEvents returns the events of a turn, in the order and the form of a stock master.
func makeEvents(t presence.Turn) (out []event) {
	if len(t.New)+len(t.Lost) > 0 {
		out = append(out, event{tagPresenceChange, map[string]any{"new": t.New, "lost": t.Lost}})
	}
	return append(out, event{tagPresent, map[string]any{"present": t.Present}})
}
