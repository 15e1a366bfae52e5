package roots

import "time"

// Timing are the package's timeouts and intervals.
type Timing struct {
	Quiet time.Duration // without news from the disk before a scan; 150 ms
	// the same after a few hints only, unless they come again and again: a file was saved; 30 ms
	Brief    time.Duration
	QuietMax time.Duration // a scan is not put off longer; 2 s
	Scan     time.Duration // between scans, whatever the hints; 1 min
	Poll     time.Duration // between scans when the kernel gives no hints; 5 s
	Retry    time.Duration // first pause after a failure, doubled up to RetryMax; 500 ms
	RetryMax time.Duration // 15 s
	Settle   time.Duration // edits wait no longer for a file that changes whenever it is read; 1 min
	Stall    time.Duration // a peer that sends nothing for so long is given up; 15 s
	Hold     time.Duration // timeout of the gate; 10 s
	Ready    time.Duration // what an operator waits for the log; 10 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.Quiet, 150*time.Millisecond)
	set(&t.Brief, min(t.Quiet, 30*time.Millisecond))
	set(&t.QuietMax, 2*time.Second)
	set(&t.Scan, time.Minute)
	set(&t.Poll, 5*time.Second)
	set(&t.Retry, 500*time.Millisecond)
	set(&t.RetryMax, 15*time.Second)
	set(&t.Settle, time.Minute)
	set(&t.Stall, 15*time.Second)
	set(&t.Hold, 10*time.Second)
	set(&t.Ready, 10*time.Second)
	return t
}
