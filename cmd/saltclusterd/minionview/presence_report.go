package minionview

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/wall"
)

// PathPresence is the path at which a member reports the minions that it sees.
const PathPresence = "/v1/presence"

const maxReport = 32 << 20 // bytes

// report is what a node sees of minions.
type report struct {
	Now    time.Time        `json:"now"`
	Groups []presence.Group `json:"groups"`
	Named  []presence.Named `json:"named,omitempty"`
	Met    []wall.Met       `json:"met"`
	Told   *presence.Mark   `json:"told,omitempty"` // what the latest events said, if the asker has older ones
}

var errMalformed = errors.New("malformed presence report")

func (r report) validate() error {
	for _, g := range r.Groups {
		if g.Count < 0 || g.Young < 0 || g.Count > maxReport || !g.From.IsValid() {
			return errMalformed
		}
	}
	return nil
}

// reportQuestion asks a node for its report.
type reportQuestion struct {
	since time.Time     // only requests since then; zero: all
	mark  presence.Mark // what the latest events said, as far as the asker has it
}

var presenceRPC = peerrpc.Endpoint[reportQuestion, report]{
	Method: http.MethodGet, Path: PathPresence, MaxAnswer: maxReport,
	Encode: func(q reportQuestion) url.Values {
		v := url.Values{"term": {strconv.FormatUint(q.mark.Term, 10)}, "n": {strconv.FormatUint(q.mark.N, 10)}}
		if !q.since.IsZero() {
			v.Set("since", strconv.FormatInt(q.since.Unix(), 10))
		}
		return v
	},
	Decode: func(v url.Values) (q reportQuestion, err error) {
		if s, err := strconv.ParseInt(v.Get("since"), 10, 64); err == nil {
			q.since = time.Unix(s, 0)
		}
		q.mark.Term, _ = strconv.ParseUint(v.Get("term"), 10, 64) // a missing number is an old one
		q.mark.N, _ = strconv.ParseUint(v.Get("n"), 10, 64)
		return q, nil
	},
}

// answer reports to another node.
func (p *Presence) answer(_ context.Context, _ node.ID, q reportQuestion) (report, error) {
	r := p.reportOwn(q.since)
	p.mu.Lock()
	defer p.mu.Unlock()
	if mark := p.tracker.Told(); mark.Newer(q.mark) {
		r.Told = &mark
	}
	if q.since.IsZero() { // the asker may have lost what it reported earlier
		for _, s := range p.sightings {
			r.Met = append(r.Met, s.Met)
		}
	}
	return r, nil
}

// reportOwn returns what this node sees itself.
func (p *Presence) reportOwn(since time.Time) report {
	r := report{Now: time.Now().UTC(), Met: p.cfg.Wall.MetSince(since)}
	r.Groups, r.Named = groupSubscribers(p.cfg.Subscribers(), string(p.cfg.Self))
	return r
}

// groupSubscribers counts the connections from each address, and lists those that name their minion.
func groupSubscribers(list []edge.Subscriber, self string) (groups []presence.Group, named []presence.Named) {
	at := map[netip.Addr]int{}
	for _, s := range list {
		from := s.Remote.Addr().Unmap().WithZone("")
		if presence.IsHash(s.Topic) {
			named = append(named, presence.Named{Node: self, From: from, Hash: s.Topic})
			continue
		}
		i, ok := at[from]
		if !ok {
			i = len(groups)
			at[from] = i
			groups = append(groups, presence.Group{Node: self, From: from})
		}
		groups[i].Count++
		if s.Since < presence.Window {
			groups[i].Young++
		}
	}
	return groups, named
}
