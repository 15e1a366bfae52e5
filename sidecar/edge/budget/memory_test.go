package budget

import (
	"net/netip"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/edge/netconn"
)

const testMemory = 1 << 20 // bytes

// TestMemory_CutOrder wants what is known of a connection to decide which one gives up its memory.
func TestMemory_CutOrder(t *testing.T) {
	now := netconn.Clock()
	old := now - int64(10*time.Second)
	for _, c := range []struct {
		name        string
		first, then func(m *Memory, c *Share)
	}{
		{"an unknown address", size(100 << 10), func(m *Memory, c *Share) { m.Trust(c, "m"); hold(m, c, 200<<10) }},
		{"a large one", size(smallRequest + 1), size(smallRequest)},
		{"a slow one", func(m *Memory, c *Share) { c.Progress.begun.Store(old); hold(m, c, 100<<10) }, size(200 << 10)},
		{"a small one that has not moved for long", func(m *Memory, c *Share) { c.Progress.begun.Store(old); hold(m, c, 10<<10) },
			size(100 << 10)},
		{"the largest", size(200 << 10), size(100 << 10)},
		{"a large one of two slow ones", func(m *Memory, c *Share) { c.Progress.begun.Store(old); hold(m, c, 100<<10) },
			func(m *Memory, c *Share) { c.Progress.begun.Store(old); hold(m, c, 10<<10) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemory(testMemory, 0, func(int) {})
			first, then := testShare(1), testShare(2)
			c.first(m, first)
			c.then(m, then)
			if v := m.ranked(); len(v) != 2 || v[0].share != first {
				t.Errorf("the other one is cut first: %+v", v)
			}
		})
	}
	t.Run("of the owner that holds most", func(t *testing.T) {
		m := NewMemory(testMemory, 0, func(int) {})
		for i := range 3 {
			c := testShare(1 + i) // a minion is one owner, from wherever it connects
			m.Trust(c, "greedy")
			hold(m, c, 100<<10)
		}
		other := testShare(1)
		m.Trust(other, "modest")
		hold(m, other, 200<<10)
		if v := m.ranked(); v[3].share != other {
			t.Error("one connection of a modest minion is cut before three of a greedy one")
		}
	})
}

// TestMemory_Reserve fills what large requests may have with complete ones, which give up nothing. Another large one has
// no room then, in one piece or as it arrives, and small ones have the reserve.
func TestMemory_Reserve(t *testing.T) {
	evicted := 0
	m := NewMemory(testMemory, 0, func(n int) { evicted += n })
	const large = 2 * smallRequest
	for {
		if err := m.Complete(testShare(1), large, false); err != nil {
			break
		}
		if m.Used() > testMemory {
			t.Fatalf("%d bytes used of %d", m.Used(), testMemory)
		}
	}
	if m.Used() > testMemory-testMemory/8 {
		t.Errorf("large requests use %d bytes of %d", m.Used(), testMemory)
	}
	if s := testShare(2); m.Hold(s, large) == nil {
		t.Error("a large request that arrives has room in the reserve")
	}
	cut := evicted
	arrives := testShare(3)
	check.NoError(t, m.Hold(arrives, 10<<10), "a small request that arrives")
	check.NoError(t, m.Complete(testShare(4), 10<<10, false), "a small request")
	if evicted != cut || arrives.gone {
		t.Error("a connection was cut for a small request")
	}
}

// TestMemory_KnownAddressesBounded remembers more addresses than there is room for.
func TestMemory_KnownAddressesBounded(t *testing.T) {
	m := NewMemory(testMemory, 0, func(int) {})
	for i := range maxKnown + 100 {
		c := testShare(i)
		m.Trust(c, "m")
	}
	if len(m.known) != maxKnown {
		t.Errorf("%d addresses", len(m.known))
	}
}

// testConn is a connection from an address.
type testConn netip.AddrPort

func (c testConn) Remote() netip.AddrPort { return netip.AddrPort(c) }
func (testConn) Cut(netconn.Reason)       {}

// testShare is that of a connection from the n-th address, on which a request has begun just now.
func testShare(n int) *Share {
	s := &Share{}
	s.Init(testConn(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 4)))
	s.Progress.begun.Store(netconn.Clock())
	return s
}

func hold(m *Memory, s *Share, n int64) { _ = m.Hold(s, n) }

func size(n int64) func(*Memory, *Share) { return func(m *Memory, s *Share) { hold(m, s, n) } }
