package edge

import (
	"fmt"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/sidecar/edge/netconn"
	"testing"
	"time"
)

// awaitNewcomers waits until n have come.
func awaitNewcomers(t *testing.T, e *PubEdge, n int) (all []Newcomer) {
	t.Helper()
	patience.WaitFor(t, fmt.Sprint(n, " newcomers"), func() bool {
		come, _ := e.Newcomers()
		all = append(all, come...)
		return len(all) >= n
	})
	if come, _ := e.Newcomers(); len(all) != n || len(come) != 0 {
		t.Fatalf("%d newcomers, want %d", len(all), n)
	}
	return all
}

// TestGive: what is for newcomers only stands between what was published before and after it, under the key that each
// can open.
func TestGive(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 2})
	there := subscribe(t, e, "")
	awaitNewcomers(t, e, 1)
	all, mine, other := subscribe(t, e, ""), subscribe(t, e, broadcast, "abc"), subscribe(t, e, "xyz")
	who := awaitNewcomers(t, e, 3)
	patience.WaitFor(t, "the second topic", func() bool { return indexed(e, "abc") == 1 })
	select {
	case <-e.Arrived():
	default:
		t.Error("nobody was told of newcomers")
	}
	e.Publish(pub("before"))
	given := e.Give(who, []Publication{{Body: []byte("one"), Topics: []string{"abcdef"}}, {Body: []byte("two")}})
	e.Publish(pub("after"))
	check.Equal(t, given, 4, "given")
	next(t, there, "before")
	next(t, there, "after")
	for _, body := range []string{"before", "one", "two", "after"} {
		next(t, all, body)
	}
	next(t, mine, broadcast, "before")
	next(t, mine, "abcdef", "one")
	next(t, mine, broadcast, "two")
	next(t, mine, broadcast, "after")
	e.Publish(pub("last", "xyz"))
	next(t, other, "xyz", "last") // and nothing else
	check.Equal(t, len(e.AllSubscribers()), 4, "subscribers")
	for _, n := range who {
		n.s.Cut(netconn.ReasonClosed)
	}
	patience.WaitFor(t, "the connections to end", func() bool { return e.Stats().Conns == 1 && who[0].Gone() })
	if n := e.Give(who, []Publication{{Body: []byte("too late")}}); n != 0 {
		t.Errorf("%d given to connections that have ended", n)
	}
}

// TestNewcomers_MovedTwice: who was moved to two generations meanwhile is told of once.
func TestNewcomers_MovedTwice(t *testing.T) {
	e := openPub(t, PubConfig{})
	subscribe(t, e, "")
	s := awaitNewcomers(t, e, 1)[0].s
	e.newcomers.add(s, true)
	e.newcomers.add(s, true)
	if _, moved := e.Newcomers(); len(moved) != 1 || moved[0].s != s {
		t.Errorf("moved: %v", moved)
	}
}

// TestGiveDuringARotation: who has not moved yet gets what it can open.
func TestGiveDuringARotation(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	moved, stays := subscribe(t, e, ""), subscribe(t, e, "")
	there := awaitNewcomers(t, e, 2)
	e.Rotate(Rotation{Window: time.Hour}) // the first one moves at once
	patience.WaitFor(t, "one to be moved", func() bool { return e.Stats().OnPrevious == 1 })
	patience.WaitFor(t, "it to be told of", func() bool {
		come, moved := e.Newcomers()
		return len(come) == 0 && len(moved) == 1
	})
	young := subscribe(t, e, "")
	e.Give(append(there, awaitNewcomers(t, e, 1)...), []Publication{{Body: []byte("new"), Prev: []byte("old")}})
	next(t, young, "new")
	next(t, moved, "new")
	next(t, stays, "old")
}

// TestGiveIsTakenInTime: who takes copies byte by byte is cut, for they are kept for it alone.
func TestGiveIsTakenInTime(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: time.Hour, HeartbeatTimeout: time.Hour})
	c := subscribe(t, e, "")
	n := awaitNewcomers(t, e, 1)[0]
	e.Give([]Newcomer{n}, []Publication{{Body: []byte("one")}})
	next(t, c, "one")
	owing := func() bool {
		n.s.Mu.Lock()
		defer n.s.Mu.Unlock()
		return n.s.owing != 0
	}
	if owing() {
		t.Error("what was taken is owed")
	}
	late := func(by time.Duration) {
		n.s.Mu.Lock()
		n.s.blocked, n.s.progress, n.s.owing = true, netconn.Clock(), netconn.Clock()-int64(by) // a full socket, as far as the edge knows
		n.s.Mu.Unlock()
		n.s.shard.checkOutput(n.s, netconn.Clock(), nil)
	}
	if late(time.Minute); n.Gone() {
		t.Error("cut at once")
	}
	if late(2 * time.Hour); n.s.Reason() != netconn.ReasonStalled {
		t.Errorf("not cut: %v", n.s.Reason())
	}
}
