package missedjobs

import (
	"log/slog"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

// TestOverdue: after this process stood still, what the master published meanwhile is overdue, but for what is as young
// as what is published after a restart. Before and afterwards nothing is, however old its id looks.
func TestOverdue(t *testing.T) {
	c := &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	began := c.now
	run := time.Duration(0)
	r := New(Config{
		JobTimeout: func() time.Duration { return 15 * time.Second }, Now: c.read,
		Elapsed: func() time.Duration { return run }, Logger: slog.New(slog.DiscardHandler),
	})
	pass := func(d time.Duration) { c.now, run = c.now.Add(d), run+d }
	at := func(d time.Duration) string { return began.Add(d).Format("20060102150405") + "123456" }
	own := at(-time.Hour)
	pass(time.Hour) // it starts slowly
	c.now = began
	r.stood.begin()
	for range 60 { // it runs
		pass(tickEvery)
		r.stood.look()
		check.Equal(t, r.Overdue(own), false, "an id that an operator chose")
		check.Equal(t, r.Overdue(at(-30*time.Second)), false, "a job that the master was slow with")
	}
	last := 60 * time.Second
	pass(time.Hour) // it does not
	woke := last + time.Hour
	for range 2 { // when the first one is read, and soon afterwards
		for _, tc := range []struct {
			jid  string
			want bool
			what string
		}{
			{at(last - time.Minute), false, "before it stood still"},
			{at(last + time.Second), true, "at the beginning"},
			{at(woke-time.Minute) + "_4711", true, "a minute before the end, a unique id"},
			{at(woke - 5*time.Second), false, "seconds before the end"},
			{at(woke), false, "at the end"},
			{own, false, "an id that an operator chose"},
			{"", false, "no job"},
			{"20261399000000123456", false, "no time"},
		} {
			check.Equal(t, r.Overdue(tc.jid), tc.want, tc.what)
		}
		pass(5 * time.Second)
		r.stood.look()
	}
	for range 2 {
		pass(5 * time.Second)
		check.Equal(t, r.Overdue(at(woke-time.Minute)), false, "a later part of a batch, with the id of the first one")
	}
	pass(16 * time.Second) // it stood still once more, for a short time
	check.Equal(t, r.Overdue(at(woke+20*time.Second+500*time.Millisecond)), true, "of the last time")
	check.Equal(t, r.Overdue(at(last+30*time.Minute)), false, "of the time before")

	_, to := r.stood.look()
	c.now = c.now.Add(time.Hour) // the clock was set
	if _, now := r.stood.look(); !now.Equal(to) {
		t.Errorf("a clock that is set ahead counts as a standstill at %s", now)
	}
}
