package daemon

import (
	"context"
	"net/http"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/router"
)

// buildEvents makes what says where events of minions fire, and what shows them on other masters' buses.
func (s *service) buildEvents() (err error) {
	d := s.m.d
	var rules []router.EventRule
	for _, r := range d.cfg.Events.Policy {
		rules = append(rules, router.EventRule{Tag: r.Tag, Route: r.Policy})
	}
	if s.eventRules, err = router.NewEventRules(rules); err != nil {
		return err
	}
	s.mirror, err = mirror.New(mirror.Config{
		Tags: d.cfg.Events.Mirror, Bus: s.bus, Peers: mirrorPeers{s.m}, Logger: d.log, Registerer: d.reg,
	})
	return err
}

// mirrorPeers implements mirror.Peers.
type mirrorPeers struct{ m *member }

func (p mirrorPeers) Members() []node.ID { return p.m.OtherMasters() }

// maxMirrorAnswer bounds what a peer answers to events, which is nothing.
const maxMirrorAnswer = 1 << 10

func (p mirrorPeers) Send(ctx context.Context, to node.ID, batch []byte) error {
	_, err := p.m.Call(ctx, http.MethodPost, to, mirror.Path, batch, maxMirrorAnswer)
	return err
}
