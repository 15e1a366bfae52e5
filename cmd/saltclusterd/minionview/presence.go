package minionview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/wall"
)

const (
	// refreshInterval is how often the other nodes are asked, fullInterval how often for everything and not only for
	// what is new.
	refreshInterval = 20 * time.Second
	fullInterval    = 10 * time.Minute
	// maxResultAge is the age up to which a result is returned again.
	maxResultAge = time.Second
	// maxReportAge is how long the report of a node counts after it stopped answering. Its minions are back on other
	// nodes by then.
	maxReportAge = time.Minute
)

// peerReport is the latest report of another node.
type peerReport struct {
	report
	at     time.Time // when it was asked for
	fullAt time.Time // when a full one was asked for last
}

// sighting is the latest request of a minion to another node.
type sighting struct {
	wall.Met
	node string
}

// Presence finds out which minions are alive. Every node keeps the reports of all others, so that the result does not
// depend on a node that was killed a moment ago; package sidecar/presence judges.
type Presence struct {
	cfg        *Config
	refreshing sync.Mutex // held by refresh
	refreshed  time.Time  // when it ended last; refreshing
	storing    sync.Mutex // held by storeMark

	mu        sync.Mutex
	peers     map[node.ID]*peerReport
	sightings map[string]sighting // as the other nodes reported
	drops     presence.Drops
	tracker   *presence.Tracker
	list      []presence.Minion // the result
	missing   []node.ID         // the nodes that did not answer then
}

func newPresence(cfg *Config) *Presence {
	return &Presence{
		cfg: cfg, peers: map[node.ID]*peerReport{}, sightings: map[string]sighting{},
		tracker: presence.NewTracker(presence.Mark{}, time.Now()),
	}
}

// KeepPresence tracks which minions are alive and fires the events about it, until ctx ends.
func (v *View) KeepPresence(ctx context.Context) {
	p := v.presence
	p.resetTracker(p.readMark())
	var wg sync.WaitGroup
	wg.Go(func() { p.fireEvents(ctx) })
	p.refresh(ctx)
	for backoff.Poll(ctx, refreshInterval) {
		p.refresh(ctx)
	}
	wg.Wait()
}

// resetTracker begins with what earlier events said.
func (p *Presence) resetTracker(mark presence.Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker = presence.NewTracker(mark, time.Now())
}

// refresh asks the other nodes and judges, unless that was done a moment ago.
func (p *Presence) refresh(ctx context.Context) {
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
	if time.Since(p.refreshed) < maxResultAge {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	others, before := p.cfg.Others(), p.latestMark()
	answers := peerrpc.AskAll(ctx, others, p.fetchReport)
	for id, err := range answers.Failed {
		p.cfg.Logger.Debug("presence of minions not reported", "node", id, "err", err)
	}
	if p.latestMark().Newer(before) {
		p.storeMark()
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the asker has gone, which makes no node a missing one
	}
	p.judge(others, slices.Sorted(maps.Keys(answers.Failed)))
	p.refreshed = time.Now()
}

// latestMark is what the latest events said, as far as this node knows.
func (p *Presence) latestMark() presence.Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tracker.Told()
}

// fetchReport asks another node for its report and keeps it.
func (p *Presence) fetchReport(ctx context.Context, id node.ID) (peerrpc.None, error) {
	now := time.Now()
	q, full := p.nextQuestion(id, now)
	r, err := presenceRPC.Call(ctx, p.cfg.Client, id, q)
	if err == nil {
		err = r.validate()
	}
	if err != nil {
		return peerrpc.None{}, fmt.Errorf("presence of %s: %w", id, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := p.peers[id]
	if peer == nil {
		peer = &peerReport{}
		p.peers[id] = peer
	}
	peer.report, peer.at = r, now
	if full {
		peer.fullAt = now
	}
	for _, m := range r.Met {
		if old, ok := p.sightings[m.ID]; ok && !m.At.After(old.At) {
			continue
		}
		if key, ok := p.cfg.keyHash(m.ID); ok && key == m.Key {
			p.sightings[m.ID] = sighting{m, string(id)}
		}
	}
	if r.Told != nil && r.Told.Newer(q.mark) {
		p.tracker.Hear(*r.Told, now)
	}
	return peerrpc.None{}, nil
}

// nextQuestion returns what to ask a node, and whether that counts as asking for everything.
func (p *Presence) nextQuestion(id node.ID, now time.Time) (q reportQuestion, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q.mark = p.tracker.Told()
	peer := p.peers[id]
	if peer == nil || now.Sub(peer.fullAt) > fullInterval {
		return q, true
	}
	if !peer.Now.IsZero() {
		q.since = peer.Now.Add(-time.Second)
	}
	return q, false
}

// judge finds out which minions are alive, and forgets what does not count any more.
func (p *Presence) judge(others, missing []node.ID) {
	now, own := time.Now(), p.reportOwn(time.Time{})
	ids := p.cfg.Keys.IDs()
	slices.Sort(ids)
	p.mu.Lock()
	defer p.mu.Unlock()
	scene := presence.Scene{IDs: ids, Groups: own.Groups, Named: own.Named, Seen: p.mergeSightings(ids, own.Met)}
	for id, peer := range p.peers {
		past := slices.Contains(missing, id)
		if !slices.Contains(others, id) || past && now.Sub(peer.at) > maxReportAge {
			delete(p.peers, id)
			continue
		}
		for _, g := range peer.Groups {
			g.Node, g.Past = string(id), past
			scene.Groups = append(scene.Groups, g)
		}
		for _, n := range peer.Named {
			n.Node = string(id)
			scene.Named = append(scene.Named, n)
		}
	}
	scene.Fewer = p.drops.See(scene.Groups, now)
	p.list, p.missing = presence.Judge(scene, now), missing
	p.tracker.See(p.list, now)
}

// mergeSightings returns the latest request of each minion to any node, and forgets minions without a key. The caller
// holds mu.
func (p *Presence) mergeSightings(ids []string, own []wall.Met) map[string]presence.Sighting {
	seen := make(map[string]presence.Sighting, len(ids))
	kept := make(map[string]sighting, len(ids))
	for _, id := range ids {
		if s, ok := p.sightings[id]; ok {
			kept[id] = s
			seen[id] = presence.Sighting{ID: id, At: s.At, From: s.From, Node: s.node}
		}
	}
	p.sightings = kept
	for _, m := range own {
		if key, ok := p.cfg.keyHash(m.ID); ok && key == m.Key && !m.At.Before(seen[m.ID].At) {
			seen[m.ID] = presence.Sighting{ID: m.ID, At: m.At, From: m.From, Node: string(p.cfg.Self)}
		}
	}
	return seen
}

// result returns what the latest refresh has found.
func (p *Presence) result() (list []presence.Minion, missing []node.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.missing
}
