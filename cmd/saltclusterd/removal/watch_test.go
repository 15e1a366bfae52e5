package removal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
)

func TestIsRemoved(t *testing.T) {
	for _, tc := range []struct {
		s    peer.Standing
		want bool
	}{
		{peer.Standing{Member: true, Rev: 9, Generation: 9}, false},
		{peer.Standing{Rev: 6, Generation: 1}, true},
		{peer.Standing{Rev: 5, Generation: 1}, false}, // the other one may only be behind
		{peer.Standing{Rev: 2, Generation: 2}, true},  // another history
		{peer.Standing{Rev: 9, Generation: 0}, false},
	} {
		check.Equal(t, isRemoved(tc.s, 5, 1), tc.want, tc.s)
	}
}

// fakeRoster is a saved roster of m1, m2, m3 at a high revision.
type fakeRoster struct{}

func (fakeRoster) Rev() uint64 { return 100 }
func (fakeRoster) Entries() []node.Entry {
	return []node.Entry{{ID: "m1", Fingerprint: "f1"}, {ID: "m2", Fingerprint: "f2"}, {ID: "m3", Fingerprint: "f3"}}
}
func (r fakeRoster) Lookup(id node.ID) (node.Entry, bool) {
	i := slices.IndexFunc(r.Entries(), func(e node.Entry) bool { return e.ID == id })
	if i < 0 {
		return node.Entry{}, false
	}
	return r.Entries()[i], true
}

func TestWatch_Run(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeLog)
		answer peer.Standing
		down   []node.ID
		reason string
		asked  int // members, in 9 seconds
	}{
		"removed by its log":   {change: func(l *fakeLog) { l.detached = true }, reason: "was removed"},
		"a member of a leader": {answer: peer.Standing{Rev: 200, Generation: 7}},
		"without a leader": {
			change: func(l *fakeLog) { l.leader = "" }, answer: peer.Standing{Rev: 200, Generation: 7},
			reason: "this node was removed from the cluster, according to m3", asked: 2,
		},
		"after a recovery": {
			change: func(l *fakeLog) { l.leader = "" }, answer: peer.Standing{Rev: 1, Generation: 8},
			reason: "recovered without this node, according to m3", asked: 2,
		},
		"by members that are behind": {
			change: func(l *fakeLog) { l.leader = "" }, answer: peer.Standing{Rev: 100, Generation: 7}, asked: 18,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				if c.change != nil {
					c.change(f.log)
				}
				var mu sync.Mutex
				asked, ended := 0, ""
				w := NewWatch(WatchConfig{
					Self: "m1", Log: f.log, Roster: fakeRoster{}, Generation: 7, Alive: func(node.ID) bool { return true },
					Ask: func(_ context.Context, id node.ID) (peer.Standing, error) {
						mu.Lock()
						defer mu.Unlock()
						asked++
						return c.answer, nil
					},
					End: func(reason string) { ended = reason }, Logger: slog.New(slog.DiscardHandler),
				})
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second+time.Millisecond)
				defer cancel()
				w.Run(ctx)
				// The first round may fall on the first millisecond: rounds are aligned to the start of the process.
				oneMore := c.asked > 2 && asked == c.asked+2
				if asked != c.asked && !oneMore || (ended == "") != (c.reason == "") || !strings.Contains(ended, c.reason) {
					t.Errorf("ended %q, asked %d", ended, asked)
				}
				if reason, left := w.Left(); reason != ended || left != (ended != "") {
					t.Errorf("left %q, %v", reason, left)
				}
			})
		})
	}
}

// TestWatch_RunWithLeader asks rarely, and only members that gossip does not see.
func TestWatch_RunWithLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []node.ID
		w := NewWatch(WatchConfig{
			Self: "m1", Log: newFixture(t).log, Roster: fakeRoster{}, Alive: func(id node.ID) bool { return id != "m3" },
			Ask: func(_ context.Context, id node.ID) (peer.Standing, error) {
				asked = append(asked, id)
				return peer.Standing{}, errors.New("unreachable")
			},
			End: func(reason string) { t.Error(reason) }, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*standingRarely+2*standingEvery)
		defer cancel()
		w.Run(ctx)
		check.EqualSlices(t, asked, []node.ID{"m3", "m3"}, "asked")
	})
}

func TestWatch_Answer(t *testing.T) {
	w := NewWatch(WatchConfig{Log: newFixture(t).log, Roster: fakeRoster{}, Generation: 7})
	for _, tc := range []struct {
		id   node.ID
		fp   node.Fingerprint
		want bool
	}{{"m2", "f2", true}, {"m2", "f3", false}, {"x", "f2", false}} {
		check.Equal(t, w.Answer(tc.id, tc.fp), (peer.Standing{Member: tc.want, Rev: 100, Generation: 7}), tc.id, tc.fp)
	}
}
