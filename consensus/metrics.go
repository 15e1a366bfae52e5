package consensus

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics are the counters of a Node; a nil *metrics counts nothing.
type metrics struct {
	leader    prometheus.Gauge
	term      prometheus.Gauge
	applied   prometheus.Gauge
	rev       prometheus.Gauge
	batch     prometheus.Histogram
	commit    prometheus.Histogram
	propose   prometheus.Histogram
	failures  *prometheus.CounterVec
	retries   prometheus.Counter
	forwards  prometheus.Counter
	moveCount *prometheus.CounterVec
	refusals  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(reg, "consensus")
	return &metrics{
		leader:    f.NewGauge("leader", "1 while this node is the leader."),
		term:      f.NewGauge("term", "Raft's term."),
		applied:   f.NewGauge("applied_index", "Newest log entry in the state."),
		rev:       f.NewGauge("revision", "Revision of the state."),
		batch:     f.NewHistogram("batch_requests", "Requests in one log entry.", 1, 2, 14),
		commit:    f.NewHistogram("commit_seconds", "Time from proposing a log entry to its results.", 0.0005, 2, 14),
		propose:   f.NewHistogram("propose_seconds", "Time of successful Propose calls, as their callers see them.", 0.0005, 2, 14),
		failures:  f.NewCounterVec("failed_proposals_total", "Propose calls without a result.", "reason"),
		retries:   f.NewCounter("failed_attempts_total", "Attempts that were retried."),
		forwards:  f.NewCounter("forwarded_requests_total", "Requests sent to the leader."),
		moveCount: f.NewCounterVec("voter_changes_total", "Changes of raft's configuration.", "op"),
		refusals:  f.NewCounterVec("refused_messages_total", "Messages of members that raft does not get.", "reason"),
	}
}

// registerQueue shows how full the leader's queue is.
func (m *metrics) registerQueue(reg prometheus.Registerer, b *batcher) {
	metric.NewSet(reg, "consensus").NewGaugeFunc("queue_requests", "Requests waiting for the next log entry.",
		func() float64 { return float64(len(b.queue)) })
}

func (m *metrics) setLeader(on bool) {
	if m == nil {
		return
	}
	m.leader.Set(0)
	if on {
		m.leader.Set(1)
	}
}

func (m *metrics) observeRaft(s PeerStats) {
	if m == nil {
		return
	}
	m.term.Set(float64(s.Term))
	m.applied.Set(float64(s.Applied))
	m.rev.Set(float64(s.Rev))
}

func (m *metrics) observeBatch(requests int, took time.Duration) {
	if m != nil {
		m.batch.Observe(float64(requests))
		m.commit.Observe(took.Seconds())
	}
}

func (m *metrics) observeProposal(took time.Duration) {
	if m != nil {
		m.propose.Observe(took.Seconds())
	}
}

func (m *metrics) proposalFailed(err error) {
	if m == nil {
		return
	}
	reason := "other"
	switch {
	case errors.Is(err, ErrUncertain):
		reason = "uncertain"
	case errors.Is(err, ErrNoLeader):
		reason = "no_leader"
	case errors.Is(err, ErrInvalid):
		reason = "invalid"
	case errors.Is(err, ErrClosed):
		reason = "closed"
	}
	m.failures.WithLabelValues(reason).Inc()
}

func (m *metrics) countRetry() {
	if m != nil {
		m.retries.Inc()
	}
}

func (m *metrics) countForward() {
	if m != nil {
		m.forwards.Inc()
	}
}

func (m *metrics) countMove(op move) {
	if m != nil {
		m.moveCount.WithLabelValues(string(op)).Inc()
	}
}

func (m *metrics) countRefusal(reason string) {
	if m != nil {
		m.refusals.WithLabelValues(reason).Inc()
	}
}
