package spool

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of a spool; the methods of a nil one do nothing.
type metrics struct {
	records, syncs, bytes, damages, lost prometheus.Counter
	refusals                             *prometheus.CounterVec
	seconds                              prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(reg, "journal")
	m := &metrics{
		records:  f.NewCounter("records_total", "Records written."),
		syncs:    f.NewCounter("groups_total", "Groups of records written with one fsync each."),
		bytes:    f.NewCounter("written_bytes_total", "Bytes written."),
		damages:  f.NewCounter("damages_total", "Damaged places found in the journal."),
		lost:     f.NewCounter("lost_records_total", "Records lost in damaged places."),
		refusals: f.NewCounterVec("refused_records_total", "Records not taken, by reason.", "reason"),
		seconds:  f.NewHistogram("group_seconds", "Time to write and sync a group.", 0.0002, 4, 8),
	}
	// a rule about an increase sees the first one only where there was a zero
	for _, reason := range append(slices.Collect(maps.Keys(refusalReasons())), "disk", "other") {
		m.refusals.WithLabelValues(reason)
	}
	return m
}

func (m *metrics) observeGroup(n int, size int64, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.seconds.Observe(took.Seconds())
	if err != nil {
		m.refusals.WithLabelValues("disk").Add(float64(n))
		return
	}
	m.records.Add(float64(n))
	m.bytes.Add(float64(size))
	m.syncs.Inc()
}

// refusalReasons are the reasons that have a name.
func refusalReasons() map[string]error {
	return map[string]error{"full": ErrFull, "busy": ErrBusy, "size": ErrTooLarge, "closed": ErrClosed, "hangs": ErrHangs}
}

func (m *metrics) countRefused(err error) {
	if m == nil {
		return
	}
	reason := "other"
	for text, e := range refusalReasons() {
		if errors.Is(err, e) {
			reason = text
		}
	}
	m.refusals.WithLabelValues(reason).Inc()
}

func (m *metrics) countDamage(d Damage) {
	if m != nil {
		m.damages.Inc()
		m.lost.Add(float64(d.Lost))
	}
}
