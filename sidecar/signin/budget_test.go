package signin

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// Sign-ins use their share of the CPUs and no more, whatever their number.
func TestBudgetShare(t *testing.T) {
	for _, tc := range []struct {
		cpus  int
		share float64
		slots int
	}{
		{1, 0.5, 1}, {2, 0.5, 1}, {3, 0.5, 2}, {8, 0.25, 2}, {4, 1, 4}, {2, 0.75, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(tc.cpus, tc.share, 2*time.Millisecond, time.Now)
			if cap(b.slots) != tc.slots {
				t.Errorf("%d CPUs, share %g: %d at a time", tc.cpus, tc.share, cap(b.slots))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			done := make(chan int)
			for range tc.slots {
				go func() {
					n := 0
					for b.spendShare(ctx, func() { time.Sleep(4 * time.Millisecond) }) {
						n++
					}
					done <- n
				}()
			}
			n := 0
			for range tc.slots {
				n += <-done
			}
			want := float64(tc.cpus) * tc.share * 10 / 0.004
			if got := float64(n); got > want*1.02+2 || got < want*0.97 {
				t.Errorf("%d CPUs, share %g: %d computed in 10 s, want %g", tc.cpus, tc.share, n, want)
			}
			if r, want := b.signInRate(), float64(tc.cpus)*tc.share/0.004; math.Abs(r-want) > want/100 {
				t.Errorf("rate %g, want %g", r, want)
			}
		})
	}
}

func TestBudgetEndsWithItsContext(t *testing.T) {
	b := newBudget(1, 0.05, time.Millisecond, time.Now)
	b.payCost(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b.spendShare(ctx, func() { t.Error("ran") }) {
		t.Error("said it ran")
	}
}

// TestBudget_PendingWithoutQuorum: a flood of sign-ins that nobody can decide costs a signature each, which is not free
// either.
func TestBudget_PendingWithoutQuorum(t *testing.T) {
	c := newCluster(t)
	c.settled = ErrNoQuorum
	slots := c.svc.budget.Load().slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	got := c.start(t)
	select {
	case <-got:
		t.Error("answered although the share of the CPUs is in use")
		return
	case <-time.After(100 * time.Millisecond):
	}
	for range cap(slots) {
		<-slots
	}
	select {
	case reply := <-got:
		if r, err := saltwire.ParseAuthReply(reply); err != nil || r.Outcome != saltwire.AuthPending {
			t.Errorf("outcome %v, %v", r.Outcome, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("neither answered nor dropped")
	}
}

// lateKeys cannot tell whether there is a quorum before the time for asking is over.
type lateKeys struct{ *cluster }

func (k lateKeys) Accept(ctx context.Context, _, _ string, _ Standing) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", ErrNoQuorum, ctx.Err())
}

// TestService_PendingOnTimeout: the time for a decision is over, and the minion, which waits half a second longer, is
// answered that it is pending.
func TestService_PendingOnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &lateKeys{}
		c := newCluster(t, func(cfg *Config) { cfg.Keys = keys })
		keys.cluster = c
		c.masterSay = masterReply(t, c, saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
			PubKey: c.identity.PublicText(), PublishPort: 4505, Sig: []byte("g"), AES: []byte("a"), Session: []byte("s"),
			Nonce: "n",
		}))
		if r, err := saltwire.ParseAuthReply(c.answer(t, c.request(t))); err != nil || r.Outcome != saltwire.AuthPending {
			t.Errorf("outcome %v, %v", r.Outcome, err)
		}
	})
}
