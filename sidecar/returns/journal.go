package returns

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/spool"
)

// Bounds of every journal: memory for records that consumers have not come to, and what they are given at once.
const (
	keepBytes    = 16 << 20
	batchRecords = 256
	batchBytes   = 4 << 20
)

// journal is a spool and what its consumers are at.
type journal struct {
	name   string
	spool  *spool.Spool
	forget func() // takes its metrics back
	ended  func() // waits for what its consumers have begun

	mu     sync.Mutex
	oldest map[string]time.Time // by consumer: when the first record it is not done with came in
}

// consume is the work of a consumer; see spool.Consumer.
type consume func(ctx context.Context, batch []spool.Record) (done int, err error)

// newJournal makes a journal of at most maxBytes.
func (s *Service) newJournal(name string, maxBytes int64, consumers ...spool.Consumer) (*journal, error) {
	j := &journal{name: name, oldest: map[string]time.Time{}, forget: func() {}, ended: func() {}}
	for i := range consumers {
		consumers[i].Consume = j.watchConsumer(consumers[i].Name, consumers[i].Consume)
	}
	c := spool.Config{
		Dir: s.path(name), MaxBytes: maxBytes, SegmentBytes: min(32<<20, max(maxBytes/8, 1<<16)), KeepBytes: keepBytes,
		BatchRecords: batchRecords, BatchBytes: batchBytes, Consumers: consumers, Logger: s.c.Logger.With("journal", name),
		Disk: s.c.disk, Hang: s.c.hang,
	}
	if s.c.Registerer != nil {
		own := prometheus.NewRegistry()
		c.Register = own
		all := prometheus.WrapRegistererWith(prometheus.Labels{"journal": name}, s.c.Registerer)
		defer func() { all.MustRegister(own) }() // when it has its metrics
		j.forget = func() { all.Unregister(own) }
	}
	var err error
	j.spool, err = spool.New(c)
	return j, err
}

// watchConsumer notes which record a consumer is at.
func (j *journal) watchConsumer(name string, f consume) consume {
	return func(ctx context.Context, batch []spool.Record) (int, error) {
		j.at(name, batch)
		done, err := f(ctx, batch)
		j.at(name, batch[max(0, min(done, len(batch))):])
		return done, err
	}
}

func (j *journal) at(consumer string, rest []spool.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(rest) == 0 {
		delete(j.oldest, consumer)
		return
	}
	j.oldest[consumer] = rest[0].Received
}

// done is the number of the last record that a consumer is done with.
func (j *journal) done(consumer string) uint64 {
	for _, c := range j.spool.Stats().Consumers {
		if c.Name == consumer {
			return c.Done
		}
	}
	return 0
}
