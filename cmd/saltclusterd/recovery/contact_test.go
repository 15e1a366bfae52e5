package recovery

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/integration/require"
)

func newContact(t *testing.T) *Contact {
	t.Helper()
	return &Contact{StateDir: t.TempDir(), Limit: time.Hour, Logger: slog.New(slog.DiscardHandler)}
}

func (c *Contact) note(t *testing.T, at time.Time) {
	t.Helper()
	require.NoError(t, os.WriteFile(ContactPath(c.StateDir), []byte(at.UTC().Format(time.RFC3339)), 0o600))
}

func TestContact_Keep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContact(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*contactInterval+time.Second)
		defer cancel()
		start, looks := time.Now(), 0
		c.Keep(ctx, func() bool { looks++; return looks == 2 }) // caught up once, at the second look
		last, err := c.Last()
		if want := start.Add(contactInterval).Truncate(time.Second); err != nil || !last.Equal(want) || looks != 3 {
			t.Errorf("%s instead of %s, %d looks, %v", last, want, looks, err)
		}
	})
}

func TestContact_Last(t *testing.T) {
	c := newContact(t)
	if _, err := c.Last(); err == nil {
		t.Error("without a membership")
	}
	require.NoError(t, (&membership.Record{}).Write(c.StateDir))
	joined := time.Now().Add(-90 * time.Minute).Truncate(time.Second)
	require.NoError(t, os.Chtimes(membership.RecordPath(c.StateDir), joined, joined))
	for name, text := range map[string]string{"no note": "", "a damaged note": "yesterday\n"} {
		if text != "" {
			require.NoError(t, os.WriteFile(ContactPath(c.StateDir), []byte(text), 0o600))
		}
		if last, err := c.Last(); err != nil || !last.Equal(joined) {
			t.Errorf("%s: %s, %v", name, last, err)
		}
	}
}

func TestContact_IsRecent(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		limit, noted, seen time.Duration // ago; 0: never; negative: in the future
		passed             time.Duration // since it was seen, by the monotonic clock
		want               bool
	}{
		"no limit":        {noted: 100 * time.Hour, want: true},
		"noted lately":    {limit: time.Hour, noted: 59 * time.Minute, want: true},
		"noted too old":   {limit: time.Hour, noted: 61 * time.Minute},
		"seen since":      {limit: time.Hour, noted: 61 * time.Minute, seen: time.Minute, passed: time.Minute, want: true},
		"seen too old":    {limit: time.Hour, noted: 61 * time.Minute, seen: 61 * time.Minute, passed: 61 * time.Minute},
		"suspended since": {limit: time.Hour, noted: 61 * time.Minute, seen: 61 * time.Minute, passed: time.Minute},
		"never":           {limit: time.Hour},
		"noted by a clock that was a little ahead": {limit: time.Hour, noted: -5 * time.Minute, want: true},
		"noted before the clock was set back":      {limit: time.Hour, noted: -24 * time.Hour},
		"the clock was set back while it ran":      {limit: time.Hour, noted: -24 * time.Hour, seen: -23 * time.Hour, passed: time.Minute, want: true},
		"too old, and the clock was set back":      {limit: time.Hour, noted: -24 * time.Hour, seen: -23 * time.Hour, passed: time.Hour},
	} {
		c := newContact(t)
		c.Limit = tc.limit
		if tc.noted != 0 {
			c.note(t, now.Add(-tc.noted))
		}
		var seen time.Time
		if tc.seen != 0 {
			seen = now.Add(-tc.seen)
		}
		if got := c.isRecent(now, seen, tc.passed); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
