package budget

import "testing"

// TestUnread_CutOrder wants what is known of two connections to decide which one is cut when a third needs room that
// only one of them has to make.
func TestUnread_CutOrder(t *testing.T) {
	m := NewMemory(testMemory, 0, func(int) {})
	trust := func(s *Share, minion string) *Share { m.Trust(s, minion); return s }
	for _, c := range []struct {
		name        string
		first, then *Share
		more        []*Share // hold as much as first each
		firstHolds  int64
	}{
		{name: "a stranger", first: testShare(1), then: trust(testShare(1), "m"), firstHolds: 100 << 10},
		{name: "the largest", first: testShare(1), then: testShare(2), firstHolds: 300 << 10},
		{name: "of the minion that holds most", first: trust(testShare(1), "greedy"), then: trust(testShare(1), "modest"),
			more: []*Share{trust(testShare(2), "greedy"), trust(testShare(3), "greedy")}, firstHolds: 100 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := 200<<10 + c.firstHolds*int64(1+len(c.more))
			u := NewUnread(used)
			for _, s := range append(c.more, c.first) {
				takeRoom(t, u, s, c.firstHolds)
			}
			takeRoom(t, u, c.then, 200<<10)
			takeRoom(t, u, trust(testShare(9), "asker"), 1)
			cut := c.first.dropped
			for _, s := range c.more {
				cut = cut || s.dropped
			}
			if !cut || c.then.dropped {
				t.Error("the other one was cut")
			}
			if u.Used() > used {
				t.Errorf("%d bytes are held of %d", u.Used(), used)
			}
		})
	}
}

// TestUnread_AskerIsCut wants a connection to be cut itself when no other comes before it, and then none is.
func TestUnread_AskerIsCut(t *testing.T) {
	m := NewMemory(testMemory, 0, func(int) {})
	minion, stranger := testShare(1), testShare(2)
	m.Trust(minion, "m")
	u := NewUnread(100)
	takeRoom(t, u, minion, 90)
	takeRoom(t, u, stranger, 10)
	if other := testShare(3); u.TakeRoom(other, 11) || !other.dropped {
		t.Error("a stranger has taken the room of a minion")
	}
	if stranger.dropped || u.Used() != 100 {
		t.Errorf("a connection was cut in vain; %d bytes are held", u.Used())
	}
	u.GiveBack(stranger, 10)
	u.GiveBack(minion, 90)
	if u.Used() != 0 || len(u.holders) != 0 {
		t.Errorf("%d bytes are held", u.Used())
	}
}

// TestUnread_SingleAnswer wants an answer larger than all room to be kept where nothing else is held, and what a
// dropped connection gives back not to count.
func TestUnread_SingleAnswer(t *testing.T) {
	u := NewUnread(100)
	large, minion := testShare(1), testShare(2)
	takeRoom(t, u, large, 200)
	NewMemory(testMemory, 0, func(int) {}).Trust(minion, "m")
	takeRoom(t, u, minion, 50)
	if !large.dropped || u.TakeRoom(large, 1) {
		t.Error("the large one is still there")
	}
	u.GiveBack(large, 200)
	if u.Used() != 50 {
		t.Errorf("%d bytes are held", u.Used())
	}
	u.Adopt(testShare(3), 500)
	if u.Used() != 550 {
		t.Errorf("%d bytes are held", u.Used())
	}
}

func takeRoom(t *testing.T, u *Unread, s *Share, size int64) {
	t.Helper()
	if !u.TakeRoom(s, size) {
		t.Fatal("no room")
	}
}
