package jobs

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
)

// Store carries jobs between the local master's job cache and the other members. Create it with New.
type Store struct {
	*replica.Replica[string, *peer, message]
	cfg     Config
	disk    disk
	index   *index
	metrics *metrics

	writing sync.Mutex // one batch of others' records at a time
	claims  *claims
	pulled  atomic.Int64 // bytes that the present Pull has brought

	mu   sync.Mutex // guards what follows
	last struct {   // whom a job's records went to last
		jid   string
		peers []*peer
	}
	watched map[string]*watch
	members []node.ID // the others, as of the last change

	news chan string // jobs whose heads are to be told
}

// maxNews is how many publications may wait to be read; what is more is found by polling.
const maxNews = 4096

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	d := newDisk(cfg.Master)
	s := &Store{
		disk: d, metrics: newMetrics(cfg.Registerer), claims: newClaims(cfg.Timing.Claim), watched: map[string]*watch{},
		news: make(chan string, maxNews),
	}
	s.index = newIndex(d, cfg.Master.Keep, cfg.Now, func() { s.Changed() })
	var err error
	s.Replica, err = replica.New(&cfg.Config, replica.Spec[string, *peer, message]{
		Name: "jobs", Off: cfg.Off, Pace: pace,
		Table: replica.Table{File: tableName, Load: s.index.load, Encode: s.index.encode, Rest: 100,
			Lost: "jobs removed while saltclusterd was stopped are not known"},
		Pull: replica.Puller[string]{Offered: s.askOffer, Fetch: s.fetch, Page: 1, AtATime: 4},
		Path: Path, MaxBody: MaxBody, Decode: decode, Take: s.handle, AnswersOff: true,
		NewSender: func(p *replica.Peer[string]) *peer { return &peer{Peer: p, s: s} },
		After:     s.membersChanged, Covers: true, Limit: maxDirty, Batch: maxDigest,
		Tasks: []func(context.Context){s.keepScanning, s.keepPolling},
		Settle: func() {
			s.writing.Lock()
			defer s.writing.Unlock()
		},
		Failures: s.metrics.failures, Fault: "job not handled",
	})
	s.cfg = cfg
	return s, err
}

// SetKeep says how long the master keeps jobs from now on; zero: for ever.
func (s *Store) SetKeep(keep time.Duration) {
	s.index.setKeep(keep)
}

// Published says that the local master has just published a job. It never blocks.
func (s *Store) Published(jid string) {
	if s.Off() != "" || !validJID(jid) {
		return
	}
	s.index.touched(jid, 0, true)
	s.watch(jid, false)
	select {
	case s.news <- jid:
	default: // polling finds it
	}
}

// Unasked says that a return which no job asked for was just written to the local job cache, together with its job.
// Such a job is not written to again, so it is told once and not looked at repeatedly. Otherwise it is like Stored.
func (s *Store) Unasked(jid, minion string, ret Return) {
	if s.Off() != "" || !validJID(jid) || !validMinion(minion) {
		return
	}
	r := s.stored(jid, minion, ret)
	s.index.arrived(jid)
	if len(s.targets(jid)) == 0 {
		return
	}
	select {
	case s.news <- jid:
	default:
		s.watch(jid, true) // which finds that the others lack it
	}
	s.stream(r)
}

// Stored says that a return was just written to the local job cache, ahead when the publisher of its job has yet to
// take it. It never blocks; the bytes must not be changed later.
func (s *Store) Stored(jid, minion string, ret Return, ahead bool) {
	if s.Off() != "" || !validJID(jid) || !validMinion(minion) {
		return
	}
	r := s.stored(jid, minion, ret)
	r.ahead = ahead
	s.watch(jid, true)
	s.stream(r)
}

// stored notes a return, and makes the record of it.
func (s *Store) stored(jid, minion string, ret Return) *record {
	at := s.cfg.Now().UnixNano()
	s.index.touched(jid, at, true)
	return &record{jid: jid, at: at, name: minion, ret: true, data: ret.Data, out: ret.Out, hasO: ret.Out != nil}
}

// stream sends a record to the replicas of its job.
func (s *Store) stream(r *record) {
	for _, p := range s.targets(r.jid) {
		p.enqueue(r)
	}
}

// targets are the peers that shall have a job.
func (s *Store) targets(jid string) []*peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.jid == jid {
		return s.last.peers
	}
	var out []*peer
	for _, id := range s.cfg.Replicas(jid) {
		if p, ok := s.Feed().Peer(id); ok {
			out = append(out, p)
		}
	}
	s.last.jid, s.last.peers = jid, out
	return out
}

// membersChanged is called when members may be others. When they are, so are the replicas.
func (s *Store) membersChanged(changed bool) {
	members := s.cfg.Members()
	s.mu.Lock()
	s.last.jid, s.last.peers = "", nil
	left := slices.ContainsFunc(s.members, func(id node.ID) bool { return !slices.Contains(members, id) })
	s.members = members
	s.mu.Unlock()
	if changed {
		s.Feed().Tell(false)
	}
	if left { // what was too new to be compared may be from the member that left, which cannot tell of it
		s.Go(s.tellLater) // Close waits for the feed, which calls this, first
	}
}

// tellLater compares with the others when what is new now can be.
func (s *Store) tellLater(ctx context.Context) {
	if backoff.Sleep(ctx, 3*s.cfg.Timing.Quiet) {
		s.Feed().Tell(false)
	}
}

// fail counts and logs what could not be done.
func (s *Store) fail(op, jid string, err error) { s.Fail(op, err, "jid", jid) }
