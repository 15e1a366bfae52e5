package signin

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestTurnstile(t *testing.T) {
	at := time.Unix(1000, 0)
	pending := 0
	ts := newTurnstile(Newcomers{Rate: 10, PerAddress: 2, MaxPending: 100, Pending: func() int { return pending }},
		func() time.Time { return at })
	count := func(n int, from string) (in int, limit string) {
		for range n {
			l := ts.admitNewcomer(netip.MustParseAddr(from), "m")
			if l == "" {
				in++
			} else {
				limit = l
			}
		}
		return in, limit
	}
	for _, tc := range []struct {
		name  string
		after time.Duration
		from  string
		n, in int
		limit string
	}{
		{"what a site starts at once", 0, "10.0.0.1", 100, 2 * newcomerBurst, "newcomer_address"},
		{"the same address, a second later", time.Second, "10.0.0.1", 10, 2, "newcomer_address"},
		{"another address", 0, "10.0.0.2", 80, 80, ""},
		{"IPv6 counts by network", 0, "2001:db8::1", 60, 60, ""},
		{"and so does its neighbour", 0, "2001:db8::ffff", 60, 20, "newcomer_address"},
		{"IPv4 in IPv6 is IPv4", 0, "::ffff:10.0.0.2", 5, 0, "newcomer_address"},
		{"all together", 0, "10.0.0.3", 80, 80, ""},
		{"all together, another one", 0, "10.0.0.4", 80, 80, ""},
		{"no more for anyone", 0, "10.0.0.5", 10, 400 - 320 - 2, "newcomer_total"},
	} {
		at = at.Add(tc.after)
		in, limit := count(tc.n, tc.from)
		if tc.name == "no more for anyone" { // tokens that came back meanwhile
			for in < tc.n && limit == "" {
				in, limit = count(tc.n, tc.from)
			}
			if limit != "newcomer_total" && limit != "newcomer_address" {
				t.Errorf("%s: %d, %q", tc.name, in, limit)
			}
			continue
		}
		if in != tc.in || limit != tc.limit {
			t.Errorf("%s: %d let in, %q; want %d, %q", tc.name, in, limit, tc.in, tc.limit)
		}
	}
	at = at.Add(time.Hour)
	pending = 100
	if in, limit := count(1, "10.0.0.9"); in != 0 || limit != "pending_full" {
		t.Errorf("%d, %q", in, limit)
	}
}

func TestTurnstileRemembersAFewAddresses(t *testing.T) {
	at := time.Unix(1000, 0)
	ts := newTurnstile(Newcomers{PerAddress: 1}, func() time.Time { return at })
	for i := range maxAddresses + 100 { // each one too many has all of them looked at
		ts.admitNewcomer(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), "m")
	}
	if len(ts.newcomers.by) > maxAddresses {
		t.Errorf("%d addresses", len(ts.newcomers.by))
	}
}

// TestTurnstile_Replies wants answers left for keys that wait, however many strangers sign in with new ones, and for
// other addresses, however much comes from one.
func TestTurnstile_Replies(t *testing.T) {
	at := time.Unix(1000, 0)
	ts := newTurnstile(Newcomers{PerAddress: 50}, func() time.Time { return at })
	for _, c := range []struct {
		from     string
		repeated bool
		want     int
	}{
		{"10.0.0.1", false, 50}, {"10.0.0.1", false, 0}, {"10.0.0.2", false, 50}, {"10.0.0.3", false, 0},
		{"10.0.0.1", true, 50}, {"10.0.0.2", true, 50}, {"10.0.0.3", true, 0},
	} {
		n := 0
		for ts.mayAnswer(netip.MustParseAddr(c.from), c.repeated) {
			n++
		}
		if n != c.want {
			t.Errorf("%s, repeated %v: %d answers at once, want %d", c.from, c.repeated, n, c.want)
		}
	}
	one := newTurnstile(Newcomers{}, func() time.Time { return at }) // addresses are not told apart
	n := 0
	for one.mayAnswer(netip.MustParseAddr("10.0.0.1"), true) {
		n++
	}
	if n != pendingReplyRate {
		t.Errorf("%d answers at once where addresses do not count", n)
	}
}

func TestTurnstileWithoutLimits(t *testing.T) {
	ts := newTurnstile(Newcomers{}, time.Now)
	for range 10_000 {
		if l := ts.admitNewcomer(netip.Addr{}, "m"); l != "" {
			t.Fatal(l)
		}
	}
}

// TestTurnstile_PendingPerAddress wants room among the pending keys for newcomers from other addresses, however many
// come from one.
func TestTurnstile_PendingPerAddress(t *testing.T) {
	const most = 1024
	at, next := time.Unix(1000, 0), 0
	pending := map[string]bool{}
	ts := newTurnstile(Newcomers{
		MaxPending: most, Pending: func() int { return len(pending) }, Waiting: func(id string) bool { return pending[id] },
	}, func() time.Time { return at })
	flood := func(from string) (in int, limit string) {
		for range 2 * most {
			id := fmt.Sprint("m", next)
			next++
			if l := ts.admitNewcomer(netip.MustParseAddr(from), id); l != "" {
				limit = l
				continue
			}
			pending[id] = true
			in++
		}
		return in, limit
	}
	for _, c := range []struct {
		from string
		in   int
	}{{"10.0.0.1", 512}, {"10.0.0.1", 0}, {"2001:db8::1", 256}, {"2001:db8::2", 0}, {"10.0.0.2", 128}, {"10.0.0.3", 64}} {
		if in, limit := flood(c.from); in != c.in || limit != "pending_address" {
			t.Errorf("%s: %d, %q; want %d", c.from, in, limit, c.in)
		}
	}
	for id := range pending { // an operator accepts or deletes all
		delete(pending, id)
	}
	if at = at.Add(shareSettles); ts.admitNewcomer(netip.MustParseAddr("10.0.0.1"), "again") != "" {
		t.Error("an address whose keys are decided is still held back")
	}
	for range 10 { // each is accepted at once, as with auto_accept
		at = at.Add(shareSettles)
		for range most {
			ts.admitNewcomer(netip.MustParseAddr("10.0.0.9"), fmt.Sprint("m", next))
			next++
		}
	}
	if ts.shares.count > 3*most {
		t.Errorf("%d ids are remembered", ts.shares.count)
	}
}
