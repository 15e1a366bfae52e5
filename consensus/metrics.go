package consensus

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "saltcluster_consensus_" + name, Help: help})
	}
	count := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "saltcluster_consensus_" + name, Help: help}
	}
	hist := func(name, help string, start float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "saltcluster_consensus_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(start, 2, 14),
		})
	}
	m := &metrics{
		leader:  gauge("leader", "1 while this node is in office."),
		term:    gauge("term", "Raft's term."),
		applied: gauge("applied_index", "Newest log entry in the state."),
		rev:     gauge("revision", "Revision of the state."),
		batch:   hist("batch_requests", "Requests in one log entry.", 1),
		commit:  hist("commit_seconds", "From proposing a log entry to its results.", 0.0005),
		propose: hist("propose_seconds", "Successful Propose calls, as their callers see them.", 0.0005),
		failures: prometheus.NewCounterVec(count("proposals_failed_total", "Propose calls without a result."),
			[]string{"reason"}),
		retries:   prometheus.NewCounter(count("attempts_failed_total", "Attempts that were tried again.")),
		forwards:  prometheus.NewCounter(count("forwarded_total", "Requests sent to the leader.")),
		moveCount: prometheus.NewCounterVec(count("voter_changes_total", "Changes of raft's configuration."), []string{"op"}),
		refusals: prometheus.NewCounterVec(count("messages_refused_total", "Messages of members that raft does not get."),
			[]string{"reason"}),
	}
	reg.MustRegister(m.leader, m.term, m.applied, m.rev, m.batch, m.commit, m.propose, m.failures, m.retries, m.forwards,
		m.moveCount, m.refusals)
	return m
}

// registerQueue shows how full the leader's queue is.
func (m *metrics) registerQueue(reg prometheus.Registerer, b *batcher) {
	if reg == nil {
		return
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "saltcluster_consensus_queue_requests", Help: "Requests waiting for the next log entry.",
	}, func() float64 { return float64(len(b.queue)) }))
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
