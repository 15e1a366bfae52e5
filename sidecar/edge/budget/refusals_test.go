package budget

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

func TestAllowance(t *testing.T) {
	var b allowance
	now := int64(1)
	for range 10 {
		if wait := b.spend(now, 1, 1, 10); wait != 0 {
			t.Fatalf("slowed by %s at once", wait)
		}
	}
	check.Equal(t, b.spend(now, 1, 1, 10), time.Second, "slowed by")
	for range 1000 {
		b.spend(now, 1, 1, 10)
	}
	if wait := b.spend(now, 1, 1, 10); wait > maxSlowed {
		t.Errorf("slowed by %s", wait)
	}
	if b.full(now, 1, 10) || !b.full(now+int64(time.Minute), 1, 10) {
		t.Error("nothing, or all, is forgotten")
	}
	if wait := b.spend(now+int64(time.Minute), 1, 1, 10); wait != 0 {
		t.Errorf("slowed by %s after a minute", wait)
	}
}

// TestAllowance_CountsBytes checks that few large refusals slow a connection as many small ones of as many bytes do, and
// that the debt of one does not slow another connection of the address for longer than before.
func TestAllowance_CountsBytes(t *testing.T) {
	const large = 64 << 20
	now := int64(1)
	var one allowance
	wait := one.spend(now, refusalCost(large), connRefused, connBurst)
	want := time.Duration((refusalCost(large) - connBurst) / connRefused * float64(time.Second))
	if d := wait - want; d > time.Millisecond || d < -time.Millisecond {
		t.Errorf("slowed by %s after %d bytes, want %s", wait, large, want)
	}
	var bs Refusals
	addr := netip.MustParseAddr("192.0.2.1")
	for range 20 {
		bs.spend(addr, now, refusalCost(large))
	}
	if wait := bs.spend(addr, now, refusalCost(600)); wait > maxSlowed {
		t.Errorf("a small refusal of the same address slows its connection by %s", wait)
	}
	for _, size := range []int64{0, 600, refusedUnit - 1} {
		check.Equal(t, refusalCost(size), 1, "a refusal of", size, "bytes counts")
	}
}

func TestRefusals_Bounded(t *testing.T) {
	var bs Refusals
	for i := range 3 * maxAddresses {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if wait := bs.spend(addr, int64(1+i), 1); wait != 0 {
			t.Fatalf("the first refusal of %s is slowed", addr)
		}
	}
	if len(bs.of) > maxAddresses {
		t.Errorf("%d addresses remembered", len(bs.of))
	}
	bs.spend(netip.MustParseAddr("192.0.2.1"), int64(time.Hour), 1)
	if len(bs.of) != 1 {
		t.Errorf("%d addresses remembered for ever", len(bs.of))
	}
}

// TestRefusals_Network checks that the addresses of one network of IPv6 are counted together.
func TestRefusals_Network(t *testing.T) {
	var bs Refusals
	slowed := func(of func(i byte) string) bool {
		for i := range int(2 * addrBurst) {
			if bs.spend(netip.MustParseAddr(of(byte(i))), 1, 1) > 0 {
				return true
			}
		}
		return false
	}
	if !slowed(func(i byte) string { return fmt.Sprintf("2001:db8:0:1::%x", i) }) {
		t.Error("a network that takes turns with its addresses is not slowed")
	}
	if bs.spend(netip.MustParseAddr("2001:db8:0:2::1"), 1, 1) > 0 || bs.spend(netip.MustParseAddr("192.0.2.1"), 1, 1) > 0 {
		t.Error("others are slowed for it")
	}
	if slowed(func(i byte) string { return fmt.Sprintf("192.0.2.%d", i) }) {
		t.Error("addresses of IPv4 are slowed for each other")
	}
}
