package signin

import (
	"context"
	"sync"
	"time"

	"saltclusterd/backoff"
)

// budget keeps sign-ins to their share of the CPUs: a token bucket that every sign-in pays its measured cost into,
// beside a bound on how many compute at a time. With the share's whole number of CPUs busy it never makes anyone wait;
// the bucket is for the fraction.
type budget struct {
	slots chan struct{}
	cpus  float64 // seconds of computing per second
	now   func() time.Time

	mu      sync.Mutex
	balance float64 // seconds
	at      time.Time
	cost    float64 // seconds of a sign-in, a moving average
}

const (
	// burst is how much unspent share may be saved up, in seconds of computing per CPU.
	burst = 0.05
	// costWeight is that of the newest sign-in's cost in the average.
	costWeight = 0.05
)

// newBudget allows sign-ins to use a share of cpus; cost is what one takes, to begin with.
func newBudget(cpus int, share float64, cost time.Duration, now func() time.Time) *budget {
	b := &budget{cpus: max(float64(cpus)*share, 0.05), now: now, at: now(), cost: cost.Seconds()}
	slots := int(b.cpus)
	if float64(slots) < b.cpus {
		slots++
	}
	b.slots = make(chan struct{}, slots)
	return b
}

// spendShare runs f, which computes a sign-in, when the share allows it; false when ctx ended before.
func (b *budget) spendShare(ctx context.Context, f func()) bool {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-b.slots }()
	if wait := b.waitTime(); wait > 0 && !backoff.Sleep(ctx, wait) {
		return false
	}
	began := b.now()
	f()
	b.payCost(b.now().Sub(began))
	return true
}

// waitTime is how long until the balance is positive.
func (b *budget) waitTime() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.balance = min(b.balance+now.Sub(b.at).Seconds()*b.cpus, burst*b.cpus)
	b.at = now
	if b.balance >= 0 {
		return 0
	}
	return time.Duration(-b.balance / b.cpus * float64(time.Second))
}

func (b *budget) payCost(cost time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance -= cost.Seconds()
	b.cost += (cost.Seconds() - b.cost) * costWeight
}

// signInRate is how many sign-ins a second the share allows at their present cost.
func (b *budget) signInRate() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cost <= 0 {
		return 0
	}
	return b.cpus / b.cost
}
