package sidecar

import (
	"bytes"

	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
)

// mostNoted is how many events of one request are remembered: with more the newest others would be forgotten for one
// minion's.
const mostNoted = 64

// noteEvents remembers the events of a request that this node's master has taken.
func (p *Proxy) noteEvents(c *call, route string, reply []byte) {
	if p.cfg.Heard == nil || !router.IsEvent(c.peek.Cmd) || route != "bus" && route != "local" ||
		bytes.Equal(reply, badLoad) {
		return
	}
	e := eventlog.Event{At: c.at, Minion: c.peek.ID, From: string(c.from), Python: route == "local"}
	if c.peek.Events == nil {
		e.Tag = c.peek.Tag
		p.cfg.Heard.Note(e)
		return
	}
	tags, err := saltwire.EventTags(c.peek.Events)
	if err != nil {
		return // no master fires it
	}
	for _, e.Tag = range tags[:min(len(tags), mostNoted)] {
		p.cfg.Heard.Note(e)
	}
}
