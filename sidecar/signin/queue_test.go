package signin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/saltwire"
)

// bench is a queue with a clock of its own, whose sign-ins are told apart by names.
type bench struct {
	*queue
	at   time.Time
	gone map[string]bool
	shed []string
}

func newBench(max int) *bench {
	b := &bench{at: time.Unix(1000, 0), gone: map[string]bool{}}
	b.queue = newQueue(max, 4*time.Second, func() time.Time { return b.at })
	return b
}

// come adds the sign-in "minion/nonce".
func (b *bench) come(id, nonce string, known bool) {
	name := id + "/" + nonce
	r := &Request{Auth: saltwire.AuthRequest{ID: id, Nonce: nonce}, Raw: []byte(name), At: b.at,
		Gone: func() bool { return b.gone[name] }}
	shed, _ := b.putRequest(r, known)
	b.shed = append(b.shed, names(shed)...)
}

func names(all []*Request) (out []string) {
	for _, r := range all {
		out = append(out, string(r.Raw))
	}
	return out
}

// next takes a sign-in and ends it; the names of all that were answered with it come back.
func (b *bench) next(strangers bool) string {
	l, r, _ := b.takeRequest(strangers)
	if l == nil {
		return ""
	}
	tries := names(b.endRequest(l, r.Auth.Nonce))
	if len(tries) > 1 {
		return fmt.Sprint(r.Auth.ID, tries)
	}
	return string(r.Raw)
}

func (b *bench) all(strangers bool) (out []string) {
	for {
		n := b.next(strangers)
		if n == "" {
			return out
		}
		out = append(out, n)
	}
}

func TestQueueOrder(t *testing.T) {
	for _, tc := range []struct {
		name      string
		come      func(*bench)
		strangers bool
		want      []string
		shed      []string
	}{
		{"first come, first served; known before strange", func(b *bench) {
			b.come("s1", "1", false)
			b.come("k1", "1", true)
			b.come("k2", "1", true)
		}, true, []string{"k1/1", "k2/1", "s1/1"}, nil},
		{"strangers wait until they may be taken", func(b *bench) {
			b.come("s1", "1", false)
			b.come("k1", "1", true)
		}, false, []string{"k1/1"}, nil},
		{"the newest of a party is answered, with all its tries; the others after everybody else", func(b *bench) {
			b.come("k1", "1", true)
			b.come("k1", "2", true)
			b.come("k2", "1", true)
			b.come("k1", "2", true)
		}, true, []string{"k1[k1/2 k1/2]", "k2/1", "k1/1"}, nil},
		{"who hung up is not answered", func(b *bench) {
			b.come("k1", "1", true)
			b.come("k1", "2", true)
			b.come("k2", "1", true)
			b.gone["k1/2"], b.gone["k2/1"] = true, true
		}, true, []string{"k1/1"}, nil},
		{"the old ones come last, but not who has come again", func(b *bench) {
			b.come("k1", "1", true)
			b.come("k2", "1", true)
			b.at = b.at.Add(5 * time.Second)
			b.come("k3", "1", true)
			b.come("k2", "1", true)
		}, true, []string{"k2[k2/1 k2/1]", "k3/1", "k1/1"}, nil},
		{"old, but nobody else is there", func(b *bench) {
			b.come("k1", "1", true)
			b.at = b.at.Add(5 * time.Second)
		}, true, []string{"k1/1"}, nil},
		{"full: the oldest stranger goes, then the oldest", func(b *bench) {
			b.come("k1", "1", true)
			b.come("s1", "1", false)
			for i := range 4 {
				b.come(fmt.Sprint("k", i+2), "1", true)
			}
		}, true, []string{"k2/1", "k3/1", "k4/1", "k5/1"}, []string{"s1/1", "k1/1"}},
		{"an old one comes before strangers", func(b *bench) {
			b.come("k1", "1", true)
			b.come("s1", "1", false)
			b.at = b.at.Add(5 * time.Second)
			b.come("k2", "1", true)
		}, true, []string{"k2/1", "k1/1", "s1/1"}, nil},
		{"full: the oldest stranger goes before an old one", func(b *bench) {
			b.come("k1", "1", true)
			b.at = b.at.Add(5 * time.Second)
			b.come("k2", "1", true)
			b.next(true) // and k1 is old
			for i := range 5 {
				b.come(fmt.Sprint("s", i), "1", false)
			}
		}, true, []string{"k1/1", "s2/1", "s3/1", "s4/1"}, []string{"s0/1", "s1/1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(4)
			tc.come(b)
			check.EqualSlices(t, b.all(tc.strangers), tc.want, "taken")
			check.EqualSlices(t, b.shed, tc.shed, "given up")
			b.all(true)
			if b.count != 0 || len(b.parts) != 0 {
				t.Errorf("%d sign-ins, %d parties remain", b.count, len(b.parts))
			}
		})
	}
}

// A stranger gets its turn while minions keep coming.
func TestQueueStrangersTurn(t *testing.T) {
	b := newBench(1000)
	b.come("s1", "1", false)
	for i := range 100 {
		b.come(fmt.Sprint("k", i), "1", true)
	}
	got := b.all(true)
	if i := slices.Index(got, "s1/1"); i < 1 || i >= strangersTurn {
		t.Errorf("the stranger was number %d", i)
	}
}

// While one sign-in of a party is being answered, none of its others is taken.
func TestQueueOneAtATime(t *testing.T) {
	b := newBench(1000)
	b.come("k1", "1", true)
	l, r, _ := b.takeRequest(true)
	b.come("k1", "2", true)
	b.come("k1", "1", true)
	if again, _, _ := b.takeRequest(true); again != nil {
		t.Fatal("taken twice at a time")
	}
	check.EqualSlices(t, names(b.endRequest(l, r.Auth.Nonce)), []string{"k1/1", "k1/1"}, "answered")
	check.EqualSlices(t, b.all(true), []string{"k1/2"}, "then")
}

// What turned out not to be known any more waits among the strangers.
func TestQueueBack(t *testing.T) {
	b := newBench(1000)
	b.come("k1", "1", true)
	l, _, _ := b.takeRequest(false)
	b.putBack(l)
	check.Equal(t, b.next(false), "", "taken without leave")
	check.Equal(t, b.next(true), "k1/1", "taken")
	if all := b.close(); len(all) != 0 {
		t.Errorf("left: %v", names(all))
	}
	b.come("k2", "1", true)
	check.EqualSlices(t, b.shed, []string{"k2/1"}, "after the end")
}

// TestAge is how long the first minion with an accepted key has waited since it asked last; strangers and who is served
// do not count.
func TestAge(t *testing.T) {
	b := newBench(100)
	b.come("stranger", "1", false)
	b.at = b.at.Add(time.Second)
	check.Equal(t, b.oldestAge(), 0, "strangers count")
	b.come("a", "1", true)
	b.come("b", "1", true)
	b.at = b.at.Add(2 * time.Second)
	check.Equal(t, b.oldestAge(), 2*time.Second, "after two seconds")
	b.come("a", "2", true) // it has asked again: what it asked before, nobody hears
	check.Equal(t, b.oldestAge(), 0, "asked again")
	b.takeRequest(false)
	check.Equal(t, b.oldestAge(), 2*time.Second, "while the first is served")
	b.all(false)
	check.Equal(t, b.oldestAge(), 0, "nobody waits")
}

// TestQueue_StalePlacesBounded: while others are always taken first, the lane of the late ones is not looked at, and
// each late party that asks again leaves a place behind there.
func TestQueue_StalePlacesBounded(t *testing.T) {
	q := newBench(100)
	for i := range 10_000 {
		q.come("impatient", fmt.Sprint("a", i), true)
		q.at = q.at.Add(5 * time.Second)
		q.come("other", fmt.Sprint("b", i), true)
		if got, want := q.next(true), fmt.Sprint("other/b", i); got != want {
			t.Fatalf("took %q, want %q", got, want)
		}
	}
	for at, places := range q.lanes {
		if len(places) > 200 {
			t.Errorf("%d places in lane %d, of %d parties", len(places), at, len(q.parts))
		}
	}
}

// The backlog by which a rotation is slowed down is that of accepted keys. A rotation that pauses for strangers would
// hold publications back as long as they like.
func TestBacklog_Strangers(t *testing.T) {
	now := time.Now()
	s := &Service{queue: newQueue(8192, 4*time.Second, func() time.Time { return now })}
	s.budget.Store(newBudget(1, 1, 10*time.Millisecond, time.Now)) // a hundred per second
	come := func(id string, known bool) {
		s.queue.putRequest(&Request{Auth: saltwire.AuthRequest{ID: id}, At: now, Gone: func() bool { return false }}, known)
	}
	for i := range 5000 {
		come(fmt.Sprint("stranger", i), false)
	}
	check.Equal(t, s.Backlog(), 0, "with strangers only")
	for i := range 200 {
		come(fmt.Sprint("minion", i), true)
	}
	if got := s.Backlog(); got < time.Second || got > 4*time.Second {
		t.Errorf("with 200 minions: %s", got)
	}
}
