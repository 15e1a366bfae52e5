package upstream

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func waiting(from string, n byte) *call { return &call{from: from, body: []byte{n}} }

func drain(t *turns) string {
	var out []byte
	for ca := t.popCall(); ca != nil; ca = t.popCall() {
		out = append(out, ca.from...)
		out = append(out, '0'+ca.body[0], ' ')
	}
	return string(out)
}

func TestSendersTakeTurns(t *testing.T) {
	var q turns
	for i := range byte(4) {
		q.pushCall(waiting("a", i))
	}
	q.pushCall(waiting("", 0))
	q.pushCall(waiting("b", 0))
	q.pushCall(waiting("b", 1))
	q.pushCall(waiting("", 1))
	if got, want := drain(&q), "a0 0 b0 1 a1 b1 a2 a3 "; got != want {
		t.Errorf("order %q, not %q", got, want)
	}
	if q.len != 0 || q.count != 0 || len(q.lines) != 0 {
		t.Errorf("left over: %+v", q)
	}
}

func TestTurns_MakeRoom(t *testing.T) {
	var q turns
	for i := range byte(3) {
		q.pushCall(waiting("a", i))
	}
	if ca := q.makeRoom("a"); ca != nil {
		t.Errorf("the flooder got room at the cost of %s", ca.from)
	}
	ca := q.makeRoom("b")
	if ca == nil || ca.from != "a" || ca.body[0] != 2 {
		t.Fatalf("gone is %+v, not the youngest of a", ca)
	}
	q.pushCall(waiting("b", 0))
	if ca := q.makeRoom("b"); ca != nil {
		t.Error("b got more than a has")
	}
	q = turns{}
	q.pushCall(waiting("a", 0))
	q.pushCall(waiting("", 0))
	if ca := q.makeRoom("b"); ca != nil {
		t.Error("room was made among those who have one call each")
	}
}

// A sender who has as many calls under way as he may has no turn until one of them is over; the others go on.
func TestTurns_InFlightLimitPerSender(t *testing.T) {
	q := turns{most: 2, mostWaiting: 1}
	go2 := func(want string) {
		t.Helper()
		ca := q.popCall()
		if ca == nil {
			t.Fatalf("nobody's turn, not %s's", want)
		}
		if q.beginCall(ca.from); ca.from != want {
			t.Errorf("it is %s's turn, not %s's", ca.from, want)
		}
	}
	for i := range byte(4) {
		q.pushCall(waiting("a", i))
	}
	q.pushCall(waiting("b", 0))
	go2("a")
	go2("b")
	go2("a")
	if ca := q.popCall(); ca != nil || q.ready != 0 || q.len != 2 {
		t.Fatalf("%s has a third one under way; %d ready of %d", ca.from, q.ready, q.len)
	}
	if q.pushCall(waiting("a", 4)); q.popCall() != nil {
		t.Error("a call that came meanwhile may go")
	}
	q.endCall("b")
	if q.popCall() != nil {
		t.Error("the end of another's makes room for a")
	}
	q.endCall("a")
	go2("a")
	if ca := q.popCall(); ca != nil {
		t.Error("one that ended made room for two")
	}
	for range 2 {
		q.pushCall(waiting("", 0))
	}
	for range 2 {
		if ca := q.popCall(); ca == nil || q.beginCall(ca.from) {
			t.Error("who has no name is counted, or waits")
		}
	}
	if n := len(q.takeAll()); n != 2 || q.len != 0 || q.ready != 0 || q.count != 0 {
		t.Errorf("%d taken; left %+v", n, q)
	}
	for range 2 {
		q.pushCall(waiting(Waiting+"a", 0))
	}
	go2(Waiting + "a")
	if q.popCall() != nil || q.ready != 0 {
		t.Error("two that wait are under way")
	}
	q.pushCall(waiting("c", 0))
	go2("c")
	q.endCall(Waiting + "a")
	go2(Waiting + "a")
	q.endCall(Waiting + "a")
	q.endCall("c")
	q.endCall("a")
	if q.endCall("a"); len(q.busy) != 0 {
		t.Errorf("left under way: %v", q.busy)
	}
}

// Whatever is pushed, taken and given up: nothing is lost, doubled or out of its sender's order.
func TestTurnsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := turns{most: rapid.IntRange(0, 3).Draw(t, "most")}
		left, busy := map[string][]*call{}, map[string]int{}
		all := 0
		held := func(from string) bool { return q.most > 0 && busy[from] >= q.most }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			from := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "from")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				ca := waiting(from, 0)
				q.pushCall(ca)
				left[from] = append(left[from], ca)
				all++
			case 2:
				ca := q.popCall()
				if ca == nil {
					for from, line := range left {
						if len(line) > 0 && !held(from) {
							t.Fatalf("%s may go and has no turn", from)
						}
					}
					continue
				}
				if left[ca.from][0] != ca || held(ca.from) {
					t.Fatal("out of order")
				}
				if q.beginCall(ca.from) {
					busy[ca.from]++
				}
				left[ca.from] = left[ca.from][1:]
				all--
			case 5:
				if busy[from] > 0 {
					q.endCall(from)
					busy[from]--
				}
			case 3:
				if n := len(left[from]); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "i")
					q.removeCall(left[from][i])
					left[from] = slices.Delete(left[from], i, i+1)
					all--
				}
			case 4:
				longest := 0
				for _, line := range left {
					longest = max(longest, len(line))
				}
				ca := q.makeRoom(from)
				if (ca != nil) != (longest > len(left[from])+1) {
					t.Fatalf("room %v, with %d calls of %s and %d of another", ca != nil, len(left[from]), from, longest)
				}
				if ca == nil {
					continue
				}
				line := left[ca.from]
				if len(line) != longest || line[longest-1] != ca {
					t.Fatalf("not the youngest of a longest line: %+v", ca)
				}
				left[ca.from] = line[:longest-1]
				all--
			}
			ready := 0
			for from, line := range left {
				if !held(from) {
					ready += len(line)
				}
			}
			if q.len != all || q.ready != ready {
				t.Fatalf("%d wait, not %d; %d may go, not %d", q.len, all, q.ready, ready)
			}
		}
		if n := len(q.takeAll()); n != all || q.count != 0 {
			t.Fatalf("%d taken, not %d; %d lines left", n, all, q.count)
		}
	})
}

// A queue that is full of others, each of whom has a few calls, costs whoever comes next no more than an empty one.
func BenchmarkMakeRoom(b *testing.B) {
	var q turns
	for i := range 20_000 {
		q.pushCall(waiting(strconv.Itoa(i%5_000), 0))
	}
	b.ReportAllocs()
	for b.Loop() {
		ca := q.makeRoom("x")
		q.pushCall(ca)
	}
}
