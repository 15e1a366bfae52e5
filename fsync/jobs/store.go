package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"saltclusterd/fsync/feed"
	"saltclusterd/gossip/node"
)

// Store carries jobs between the local master's job cache and the other members. Create it with New.
type Store struct {
	cfg     Config
	disk    disk
	index   *index
	metrics *metrics

	writing sync.Mutex // one batch of others' records at a time
	takes   bool       // between Open and Close; writing guards it
	claims  *claims

	feed *feed.Feed[string, *peer]

	mu   sync.Mutex // guards what follows
	last struct {   // whom a job's records went to last
		jid   string
		peers []*peer
	}
	watched map[string]*watch
	members []node.ID // the others, as of the last change

	news   chan string   // jobs whose heads are to be told
	looked chan struct{} // closed after the first scan: before, a comparison would tell of lacks that are none
	ready  chan struct{} // closed when the peers may hear of this node and tell it: after that, and Config.Hold
	bodies chan struct{} // bounds requests in memory

	run    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

const (
	// maxBodies is how many requests may be in memory at a time.
	maxBodies = 4
	// maxNews is how many publications may wait to be read; what is more is found by polling.
	maxNews = 4096
)

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Store, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	d := newDisk(cfg.Master)
	s := &Store{
		cfg: cfg, disk: d, index: newIndex(d, cfg.Master.Keep, cfg.Now), metrics: newMetrics(cfg.Registerer),
		claims: newClaims(cfg.Timing.Claim), watched: map[string]*watch{},
		news: make(chan string, maxNews), looked: make(chan struct{}), ready: make(chan struct{}),
		bodies: make(chan struct{}, maxBodies),
	}
	s.feed = s.newFeed()
	return s, nil
}

// Open reads the table and starts. It does not wait for the first scan, nor for a master that has yet to make its
// cachedir.
func (s *Store) Open(ctx context.Context) error {
	if s.cfg.Off != "" {
		s.cfg.Logger.Info("jobs are not replicated", "reason", s.cfg.Off)
		return nil
	}
	if err := os.MkdirAll(s.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("open jobs: %w", err)
	}
	t, err := loadTable(s.cfg.StateDir)
	if errors.Is(err, errNewer) {
		return fmt.Errorf("open jobs: %w", err)
	}
	if err != nil {
		s.cfg.Logger.Warn("it is not known which jobs were removed while saltclusterd was away", "err", err)
	}
	s.index.restore(t)
	s.run, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.writing.Lock()
	s.takes = true
	s.writing.Unlock()
	s.feed.Open(s.run, s.cfg.Changed(s.run))
	s.wg.Go(func() { s.keepScanning(s.run) })
	s.wg.Go(func() { s.keepPolling(s.run) })
	s.wg.Go(func() { s.keepSaving(s.run) })
	s.wg.Go(func() { s.begin(s.run) })
	return nil
}

// begin lets the senders begin.
func (s *Store) begin(ctx context.Context) {
	for _, event := range []<-chan struct{}{s.looked, s.cfg.Hold} {
		if event == nil {
			continue
		}
		select {
		case <-event:
		case <-ctx.Done():
			return
		}
	}
	close(s.ready)
}

// Close stops, waits and saves the table.
func (s *Store) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.feed.Close()
	s.wg.Wait()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.takes = false
	return s.save()
}

// SetKeep says how long the master keeps jobs from now on; zero: for ever.
func (s *Store) SetKeep(keep time.Duration) {
	s.index.setKeep(keep)
}

var errNotOpen = errors.New("jobs: not open")

// Published says that the local master has just published a job. It never blocks.
func (s *Store) Published(jid string) {
	if s.cfg.Off != "" || !validJID(jid) {
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
	if s.cfg.Off != "" || !validJID(jid) || !validMinion(minion) {
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
	if s.cfg.Off != "" || !validJID(jid) || !validMinion(minion) {
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
		if p, ok := s.feed.Peer(id); ok {
			out = append(out, p)
		}
	}
	s.last.jid, s.last.peers = jid, out
	return out
}

// otherMembers are those to send to.
func (s *Store) otherMembers() []node.ID {
	return slices.DeleteFunc(slices.Clone(s.cfg.Members()), func(id node.ID) bool { return id == s.cfg.Self })
}

// membersChanged is called when members may be others. When they are, so are the replicas.
func (s *Store) membersChanged(changed bool) {
	members := s.otherMembers()
	s.mu.Lock()
	s.last.jid, s.last.peers = "", nil
	left := slices.ContainsFunc(s.members, func(id node.ID) bool { return !slices.Contains(members, id) })
	s.members = members
	s.mu.Unlock()
	if changed {
		s.feed.Tell(false)
	}
	if left { // what was too new to be compared may be from the member that left, which cannot tell of it
		s.wg.Go(func() { s.tellLater(s.run) }) // Close waits for the feed, which calls this, first
	}
}

// tellLater compares with the others when what is new now can be.
func (s *Store) tellLater(ctx context.Context) {
	t := time.NewTimer(3 * s.cfg.Timing.Quiet)
	defer t.Stop()
	select {
	case <-t.C:
		s.feed.Tell(false)
	case <-ctx.Done():
	}
}

// fail counts and logs what could not be done.
func (s *Store) fail(op, jid string, err error) {
	s.metrics.failures.WithLabelValues(op).Inc()
	if !errors.Is(err, context.Canceled) {
		s.cfg.Logger.Warn("job not handled", "op", op, "jid", jid, "err", err)
	}
}
