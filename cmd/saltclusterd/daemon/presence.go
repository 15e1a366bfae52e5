package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/wall"
)

// Every node knows what the others see of the minions, so that an answer does not hang on one that has just been killed: what it said
// last stands for a while. package presence judges.

const pathPresence = "/v1/presence"

const (
	presenceFile = "presence.json"
	maxPresence  = 32 << 20 // bytes of a word
	// presenceEvery is how often the other nodes are asked, presenceWhole how often for everything and not only what is new.
	presenceEvery = 20 * time.Second
	presenceWhole = 10 * time.Minute
	// presenceFresh is how old an answer may be that somebody gets who asks.
	presenceFresh = time.Second
	// presenceStands is how long the word of a node that does not answer any more stands: until its minions are back elsewhere.
	presenceStands = time.Minute
	// presenceKept is the age up to which what was told before a restart counts, as with a stock master (salt/master.py Maintenance).
	presenceKept = time.Hour
)

// presenceWord is what a node tells.
type presenceWord struct {
	Now    time.Time        `json:"now"`
	Groups []presence.Group `json:"groups"`
	Named  []presence.Named `json:"named,omitempty"`
	Met    []wall.Met       `json:"met"`
	Told   *presence.Mark   `json:"told,omitempty"` // the latest, when it is newer than what the asker knows
}

var errPresence = errors.New("malformed presence report")

func (w presenceWord) validate() error {
	for _, g := range w.Groups {
		if g.Count < 0 || g.Young < 0 || g.Count > maxPresence || !g.From.IsValid() {
			return errPresence
		}
	}
	return nil
}

// presenceQuestion asks a node whom it sees.
type presenceQuestion struct {
	since time.Time     // only what changed since; zero: everything
	mark  presence.Mark // what the caller has told last
}

var presenceRPC = peerrpc.Endpoint[presenceQuestion, presenceWord]{
	Method: http.MethodGet, Path: pathPresence, MaxAnswer: maxPresence,
	Encode: func(q presenceQuestion) url.Values {
		v := url.Values{"term": {strconv.FormatUint(q.mark.Term, 10)}, "n": {strconv.FormatUint(q.mark.N, 10)}}
		if !q.since.IsZero() {
			v.Set("since", strconv.FormatInt(q.since.Unix(), 10))
		}
		return v
	},
	Decode: func(v url.Values) (q presenceQuestion, err error) {
		if s, err := strconv.ParseInt(v.Get("since"), 10, 64); err == nil {
			q.since = time.Unix(s, 0)
		}
		q.mark.Term, _ = strconv.ParseUint(v.Get("term"), 10, 64) // what is missing is old
		q.mark.N, _ = strconv.ParseUint(v.Get("n"), 10, 64)
		return q, nil
	},
}

// peerWord is what is known of another node.
type peerWord struct {
	word  presenceWord
	at    time.Time // when it said so
	whole time.Time // when it was last asked for everything
}

// metElsewhere is a minion's latest request as another node has told it.
type metElsewhere struct {
	wall.Met
	node string // that met it
}

// presenceKeeper keeps what the nodes see of minions.
type presenceKeeper struct {
	s       *service
	looking sync.Mutex // one look at a time
	looked  time.Time  // when the last one ended; looking

	mu      sync.Mutex
	peers   map[node.ID]*peerWord
	seen    map[string]metElsewhere // as the other nodes told
	drops   presence.Drops
	fewer   map[netip.Addr]time.Time
	tracker *presence.Tracker
	list    []presence.Minion // of the last look
	missing []node.ID         // that did not answer at the last look
}

func newPresenceKeeper(s *service) *presenceKeeper {
	return &presenceKeeper{s: s, peers: map[node.ID]*peerWord{}, seen: map[string]metElsewhere{}, tracker: presence.NewTracker(presence.Mark{}, time.Now())}
}

// keepPresence tracks who is alive and fires the events about it until ctx ends.
func (s *service) keepPresence(ctx context.Context) {
	s.presence.start()
	var wg sync.WaitGroup
	wg.Go(func() { s.firePresence(ctx) })
	s.presence.run(ctx)
	wg.Wait()
}

// start goes on from what was told before.
func (k *presenceKeeper) start() {
	mark := k.recall()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tracker = presence.NewTracker(mark, time.Now())
}

// run looks again and again.
func (k *presenceKeeper) run(ctx context.Context) {
	for {
		k.look(ctx)
		if !backoff.Sleep(ctx, presenceEvery) {
			return
		}
	}
}

// own is what this node sees.
func (k *presenceKeeper) own(since time.Time) presenceWord {
	w := presenceWord{Now: time.Now().UTC(), Met: k.s.wall.MetSince(since)}
	w.Groups, w.Named = gather(k.s.pub.Subscribers(), string(k.s.m.d.id))
	return w
}

// gather puts connections from one address together.
func gather(subs []edge.Subscriber, self string) (groups []presence.Group, named []presence.Named) {
	at := map[netip.Addr]int{}
	for _, s := range subs {
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

// look asks the other nodes and judges, unless somebody just has.
func (k *presenceKeeper) look(ctx context.Context) {
	k.looking.Lock()
	defer k.looking.Unlock()
	if time.Since(k.looked) < presenceFresh {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	others, known := k.s.m.otherMasters(), k.told()
	var missing []node.ID
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range others {
		wg.Go(func() {
			if err := k.ask(ctx, id); err != nil {
				k.s.m.log.Debug("presence of minions not told", "node", id, "err", err)
				mu.Lock()
				missing = append(missing, id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if told := k.told(); told.Newer(known) { // written down when nobody waits for mu: the disk takes its time
		k.store(told)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // whoever asked has gone: nodes are not missing for that
	}
	slices.Sort(missing)
	k.judge(others, missing)
	k.looked = time.Now()
}

// told is what was last told of minions, as far as this node knows.
func (k *presenceKeeper) told() presence.Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tracker.Told()
}

// ask takes what another node has to tell.
func (k *presenceKeeper) ask(ctx context.Context, id node.ID) error {
	now := time.Now()
	k.mu.Lock()
	p, mark := k.peers[id], k.tracker.Told()
	if p == nil {
		p = &peerWord{}
	}
	since := p.word.Now
	whole := now.Sub(p.whole) > presenceWhole
	k.mu.Unlock()
	q := presenceQuestion{mark: mark}
	if !whole && !since.IsZero() {
		q.since = since.Add(-time.Second)
	}
	w, err := presenceRPC.Call(ctx, k.s.m.client(), id, q)
	if err == nil {
		err = w.validate()
	}
	if err != nil {
		return fmt.Errorf("presence of %s: %w", id, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.word, p.at = w, now
	if whole {
		p.whole = now
	}
	k.peers[id] = p
	for _, m := range w.Met {
		if old, ok := k.seen[m.ID]; ok && !m.At.After(old.At) {
			continue
		}
		if key, ok := k.s.keyHash(m.ID); ok && key == m.Key {
			k.seen[m.ID] = metElsewhere{m, string(id)}
		}
	}
	if w.Told != nil && w.Told.Newer(mark) {
		k.tracker.Hear(*w.Told, now)
	}
	return nil
}

// judge finds out who is alive from what there is.
func (k *presenceKeeper) judge(others, missing []node.ID) {
	now, own := time.Now(), k.own(time.Time{})
	ids := k.s.keys.IDs()
	slices.Sort(ids)
	k.mu.Lock()
	defer k.mu.Unlock()
	scene := presence.Scene{IDs: ids, Groups: own.Groups, Named: own.Named, Seen: make(map[string]presence.Sighting, len(ids))}
	kept := make(map[string]metElsewhere, len(ids)) // those without a key are forgotten
	for _, id := range ids {
		if seen, ok := k.seen[id]; ok {
			kept[id] = seen
			scene.Seen[id] = presence.Sighting{ID: id, At: seen.At, From: seen.From, Node: seen.node}
		}
	}
	k.seen = kept
	for _, m := range own.Met {
		if key, ok := k.s.keyHash(m.ID); ok && key == m.Key && !m.At.Before(scene.Seen[m.ID].At) {
			scene.Seen[m.ID] = presence.Sighting{ID: m.ID, At: m.At, From: m.From, Node: string(k.s.m.d.id)}
		}
	}
	for id, p := range k.peers {
		past := slices.Contains(missing, id)
		if !slices.Contains(others, id) || past && now.Sub(p.at) > presenceStands {
			delete(k.peers, id)
			continue
		}
		for _, g := range p.word.Groups {
			g.Node, g.Past = string(id), past
			scene.Groups = append(scene.Groups, g)
		}
		for _, n := range p.word.Named {
			n.Node = string(id)
			scene.Named = append(scene.Named, n)
		}
	}
	k.fewer = k.drops.See(scene.Groups, now)
	scene.Fewer = k.fewer
	k.list, k.missing = presence.Judge(scene, now), missing
	k.tracker.See(k.list, now)
}

// found is what the last look has found.
func (k *presenceKeeper) found() (list []presence.Minion, missing []node.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list, k.missing
}

func (m *member) reportPresence(_ context.Context, _ node.ID, q presenceQuestion) (presenceWord, error) {
	k := m.svc.presence
	word := k.own(q.since)
	k.mu.Lock()
	if mark := k.tracker.Told(); mark.Newer(q.mark) {
		word.Told = &mark
	}
	if q.since.IsZero() { // it may have forgotten what it told
		for _, seen := range k.seen {
			word.Met = append(word.Met, seen.Met)
		}
	}
	k.mu.Unlock()
	return word, nil
}

// presenceMemory is what a node remembers of what was told.
type presenceMemory struct {
	At   time.Time     `json:"at"`
	Told presence.Mark `json:"told"`
}

func (k *presenceKeeper) path() string {
	return filepath.Join(k.s.m.d.cfg.Paths.StateDir, presenceFile)
}

// store writes down what was told. Without it all minions are news after a restart.
func (k *presenceKeeper) store(mark presence.Mark) {
	text, err := json.Marshal(presenceMemory{At: time.Now().UTC(), Told: mark})
	if err == nil {
		err = durable.WriteFile(k.path(), append(text, '\n'), 0o600)
	}
	if err != nil {
		k.s.m.log.Warn("presence of minions not stored", "err", err)
	}
}

func (k *presenceKeeper) recall() presence.Mark {
	text, err := os.ReadFile(k.path())
	if errors.Is(err, fs.ErrNotExist) {
		return presence.Mark{}
	}
	var m presenceMemory
	if err == nil {
		m, err = parsePresenceMemory(text)
	}
	if err != nil {
		k.s.m.log.Warn("presence of minions not read", "path", k.path(), "err", err)
		return presence.Mark{}
	}
	if time.Since(m.At) > presenceKept {
		return presence.Mark{}
	}
	return m.Told
}

func parsePresenceMemory(text []byte) (m presenceMemory, err error) {
	return m, json.Unmarshal(text, &m)
}

// Presence implements admin.Presencer.
func (d *Daemon) Presence(ctx context.Context) (adminapi.Presence, error) {
	m := d.current()
	switch {
	case m == nil:
		return adminapi.Presence{}, d.errNoMember()
	case m.svc == nil:
		return adminapi.Presence{}, adminapi.Errorf(adminapi.CodeRefused, "ask another node", "a witness serves no minions")
	case !m.svc.opened.Load():
		return adminapi.Presence{}, adminapi.Errorf(adminapi.CodeUnavailable, "saltclusterctl status says what it waits for", "this node does not serve minions yet")
	}
	m.svc.presence.look(ctx)
	list, missing := m.svc.presence.found()
	out := adminapi.Presence{From: string(d.id), Present: []adminapi.PresentMinion{}, Absent: []adminapi.PresentMinion{}}
	for _, id := range missing {
		out.Missing = append(out.Missing, string(id))
	}
	for _, p := range list {
		one := adminapi.PresentMinion{ID: p.ID, Node: cmp.Or(p.On, p.Node), Seen: p.At, Doubt: p.Doubt}
		if p.From.IsValid() {
			one.Address = p.From.String()
		}
		if p.Alive {
			out.Present = append(out.Present, one)
		} else {
			out.Absent = append(out.Absent, one)
		}
	}
	return out, nil
}
