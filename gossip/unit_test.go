package gossip

import (
	"bytes"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestNewValidates(t *testing.T) {
	w := newWorld(t)
	good := Config{ID: "a", Port: fakePort{}, Keys: [][]byte{key(1)}, Label: "uuid", Roster: w.book}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"id":        func(c *Config) { c.ID = "A" },
		"port":      func(c *Config) { c.Port = nil },
		"roster":    func(c *Config) { c.Roster = nil },
		"no key":    func(c *Config) { c.Keys = nil },
		"short key": func(c *Config) { c.Keys = [][]byte{key(1)[:16]} },
		"no label":  func(c *Config) { c.Label = "" },
	} {
		bad := good
		edit(&bad)
		if _, err := New(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCloseWithoutOpen(t *testing.T) {
	g, err := New(Config{ID: "a", Port: fakePort{}, Keys: [][]byte{key(1)}, Label: "uuid", Roster: newWorld(t).book})
	require.NoError(t, err)
	check.NoError(t, g.Close())
	select {
	case <-g.Done():
	default:
		t.Error("Done is not closed")
	}
}

func ringOf(r *memberlist.Keyring) string {
	var out []byte
	for _, k := range r.GetKeys() {
		out = append(out, '0'+k[0])
	}
	return string(out)
}

func TestSetRing(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"1", "2"}, {"1", "12"}, {"1", "21"}, {"12", "2"}, {"12", "1"}, {"123", "3"}, {"123", "31"}, {"1234", "42"},
		{"1234", "5"},
		{"123", "456"}, {"1", "1"}, {"321", "123"},
	} {
		var from, to [][]byte
		for _, b := range []byte(c.from) {
			from = append(from, key(b-'0'))
		}
		for _, b := range []byte(c.to) {
			to = append(to, key(b-'0'))
		}
		ring, err := memberlist.NewKeyring(from[1:], from[0])
		require.NoError(t, err)
		// A reader as memberlist is one: without a lock. The race detector watches.
		stop, done := make(chan struct{}), sync.WaitGroup{}
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					for _, k := range ring.GetKeys() {
						_ = bytes.Equal(k, from[0])
					}
				}
			}
		})
		err = setRing(ring, to)
		close(stop)
		done.Wait()
		got := ringOf(ring)
		sorted := func(s string) string { b := []byte(s); slices.Sort(b); return string(b) }
		if err != nil || got[0] != c.to[0] || sorted(got) != sorted(c.to) {
			t.Errorf("%s -> %s gives %s, %v", c.from, c.to, got, err)
		}
	}
}

func TestVeto(t *testing.T) {
	w := newWorld(t)
	addr := netip.MustParseAddrPort("192.0.2.7:4520")
	w.add(node.Entry{ID: "b", Addr: addr, Fingerprint: node.FingerprintOf([]byte("b"))})
	g, err := New(Config{ID: "a", Port: fakePort{}, Keys: [][]byte{key(1)}, Label: "uuid", Roster: w.book})
	require.NoError(t, err)
	meta := node.Meta{Build: "1"}.Append(nil)
	for name, c := range map[string]struct {
		n  memberlist.Node
		ok bool
	}{
		"member": {memberlist.Node{Name: "b", Addr: addr.Addr().AsSlice(), Port: 4520, Meta: meta}, true},
		"mapped": {memberlist.Node{Name: "b", Addr: netip.AddrFrom16(addr.Addr().As16()).AsSlice(), Port: 4520,
			Meta: meta}, true},
		"self":          {memberlist.Node{Name: "a"}, true},
		"stranger":      {memberlist.Node{Name: "c", Addr: addr.Addr().AsSlice(), Port: 4520, Meta: meta}, false},
		"other address": {memberlist.Node{Name: "b", Addr: []byte{192, 0, 2, 8}, Port: 4520, Meta: meta}, false},
		"other port":    {memberlist.Node{Name: "b", Addr: addr.Addr().AsSlice(), Port: 4521, Meta: meta}, false},
		"bad name":      {memberlist.Node{Name: "B\n", Addr: addr.Addr().AsSlice(), Port: 4520, Meta: meta}, false},
		"bad address":   {memberlist.Node{Name: "b", Addr: []byte{1}, Port: 4520, Meta: meta}, false},
		"bad meta":      {memberlist.Node{Name: "b", Addr: addr.Addr().AsSlice(), Port: 4520, Meta: []byte("x")}, false},
	} {
		if err := (&delegate{g: g}).NotifyAlive(&c.n); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilterFollowsTheRoster(t *testing.T) {
	w := newWorld(t)
	now := time.Unix(1, 0)
	f := newFilter(w.book, func() time.Time { return now })
	ip := netip.MustParseAddr("192.0.2.7")
	if f.isMember(ip) {
		t.Error("an empty roster allows")
	}
	w.add(node.Entry{ID: "b", Addr: netip.AddrPortFrom(ip, 4520), Fingerprint: node.FingerprintOf([]byte("b"))})
	now = now.Add(filterAge)
	if !f.isMember(ip) {
		t.Error("a new member is not allowed")
	}
	w.remove("b")
	now = now.Add(filterAge)
	if f.isMember(ip) {
		t.Error("a removed member is allowed")
	}
}

func TestLogLines(t *testing.T) {
	for line, want := range map[string]string{
		"[ERR] memberlist: Failed a\n":    "WARN Failed a",
		"[WARN] memberlist: b":            "INFO b",
		"[DEBUG] memberlist: c":           "DEBUG c",
		"[INFO] memberlist: d":            "DEBUG d",
		"Err: Could not set the deadline": "DEBUG Err: Could not set the deadline",
		"":                                "DEBUG ",
		"[":                               "DEBUG [",
	} {
		level, text := parseLine([]byte(line))
		if got := level.String() + " " + text; got != want {
			t.Errorf("parseLine(%q) = %q, want %q", line, got, want)
		}
	}
	var out strings.Builder
	w := newLogWriter(slog.New(slog.NewTextHandler(&out, nil)))
	for range 10_000 {
		if _, err := w.Write([]byte("[ERR] memberlist: Decrypt packet failed")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n < 10 || n > 200 {
		t.Errorf("%d of 10000 lines were written", n)
	}
	out.Reset()
	w = newLogWriter(w.log)
	w.close()
	if _, err := w.Write([]byte("[ERR] memberlist: late")); err != nil || out.Len() > 0 {
		t.Errorf("closed: %q, %v", out.String(), err)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte("[ERR] memberlist: x"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, text := parseLine(line); len(text) > maxLine {
			t.Fatalf("%d bytes", len(text))
		}
	})
}
