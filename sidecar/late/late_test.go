package late

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func newClock() *clock { return &clock{time.Unix(1000, 0)} }

func (c *clock) ago(seconds int) time.Time { return c.now.Add(-time.Duration(seconds) * time.Second) }

func jids(pubs []Publication) string {
	var out []string
	for _, p := range pubs {
		out = append(out, p.JID)
	}
	return strings.Join(out, " ")
}

func TestMemoryIsBounded(t *testing.T) {
	c := newClock()
	m := NewMemory(Limits{Age: time.Minute, Count: 3, Bytes: 100}, c.read)
	want := func(what, jobs string, dropped uint64) {
		t.Helper()
		if got := jids(m.Since(c.ago(60))); got != jobs || m.Dropped() != dropped {
			t.Errorf("%s: %q and %d dropped, want %q and %d", what, got, m.Dropped(), jobs, dropped)
		}
	}
	m.Add(Publication{JID: "1", Plain: make([]byte, 10), At: c.ago(50)})
	m.Add(Publication{JID: "2", Plain: make([]byte, 10), At: c.ago(40)})
	m.Add(Publication{JID: "1", Plain: make([]byte, 10), At: c.now}) // by a second master
	want("the same twice", "1 2", 0)
	m.Add(Publication{JID: "3", Plain: make([]byte, 10), At: c.now})
	m.Add(Publication{JID: "4", Plain: make([]byte, 10), At: c.now})
	want("more than it holds", "2 3 4", 1)
	m.Add(Publication{JID: "5", Plain: make([]byte, 85), At: c.now})
	want("larger than it holds", "4 5", 3)
	m.Add(Publication{JID: "6", Plain: make([]byte, 101), At: c.now})
	want("one that is too large", "4 5", 4)
	m.Add(Publication{JID: "7", At: c.ago(59)})
	check.Equal(t, jids(m.Since(c.ago(30))), "4 5", "of the last 30 s")
	c.now = c.now.Add(time.Minute + time.Second)
	want("too old", "", 4)
}

func TestMemory_AddMergesDuplicates(t *testing.T) {
	c := newClock()
	m := NewMemory(Limits{Age: time.Minute, Count: 10, Bytes: 100}, c.read)
	m.Add(Publication{JID: "1", Plain: []byte("x"), At: c.ago(1), Topics: []string{"a"}})
	m.Add(Publication{JID: "1", Plain: []byte("x"), At: c.ago(5), Topics: []string{"b"}})
	m.Add(Publication{JID: "1", Plain: []byte("x"), At: c.ago(5), Topics: []string{"b"}}) // given by another peer, too
	got := m.Since(c.ago(60))
	if len(got) != 1 || !got[0].At.Equal(c.ago(5)) || !slices.Equal(got[0].Topics, []string{"a", "b"}) {
		t.Errorf("%+v", got)
	}
	m.Add(Publication{JID: "3", Plain: []byte("x"), At: c.ago(2)})
	m.Add(Publication{JID: "2", Plain: []byte("x"), At: c.ago(3)}) // a peer brings it later
	check.Equal(t, jids(m.Since(c.ago(60))), "1 2 3", "in the order")
	if m.Clear(); m.Bytes() != 0 || len(m.Since(c.ago(60))) != 0 {
		t.Error("something is left")
	}
}

// 3008 publishes all parts of a batch under one id.
func TestMemory_AddKeepsPartsOfABatch(t *testing.T) {
	c := newClock()
	m := NewMemory(Limits{Age: time.Minute, Count: 10, Bytes: 1000}, c.read)
	part := func(user string, ids ...any) []byte {
		return plain(t, map[string]any{"jid": "1", "fun": "test.ping", "tgt": ids, "tgt_type": "list", "user": user})
	}
	first, second := part("a", "web1", "web2"), part("a", "web3", "web4")
	m.Add(Publication{JID: "1", Plain: first, Topics: []string{"1"}, At: c.ago(5)})
	m.Add(Publication{JID: "1", Plain: second, Topics: []string{"3"}, At: c.ago(4)})
	m.Add(Publication{JID: "1", Plain: second, Topics: []string{"4"}, At: c.ago(4)})                    // for another topic
	m.Add(Publication{JID: "1", Plain: part("b", "web1", "web2"), Topics: []string{"2"}, At: c.ago(3)}) // of another master
	m.Add(Publication{JID: "1", Plain: append(part("a", "web5"), make([]byte, 1000)...), At: c.ago(2)}) // too large
	m.Add(Publication{JID: "1", Plain: append(part("a", "web5"), make([]byte, 1000)...), At: c.ago(2)}) // once more
	got := m.Since(c.ago(60))
	if len(got) != 2 || !bytes.Equal(got[0].Plain, first) || !bytes.Equal(got[1].Plain, second) ||
		!slices.Equal(got[0].Topics, []string{"1", "2"}) || !slices.Equal(got[1].Topics, []string{"3", "4"}) {
		t.Errorf("%+v", got)
	}
	check.Equal(t, m.Dropped(), 1, "dropped")
}

func TestProcessesKnowsWhoIsNew(t *testing.T) {
	c := newClock()
	p := NewProcesses(time.Minute, c.read)
	for _, step := range []struct {
		s    Start
		news bool
		new  string // minions that have started within the last half minute
	}{
		{Start{"web1", 1, c.ago(50)}, true, ""},
		{Start{"web1", 1, c.ago(1)}, false, ""}, // signs in again
		{Start{"web1", 2, c.ago(1)}, true, "web1"},
		{Start{"db1", Unnamed, c.ago(2)}, true, "db1 web1"},
		{Start{"web1", 2, c.ago(40)}, true, "db1"}, // another node has known it for long
		{Start{"web1", 2, c.ago(1)}, false, "db1"},
		{Start{"db1", Unnamed, c.ago(1)}, true, "db1"}, // each time a new one
	} {
		if news := p.SignedIn(step.s); news != step.news {
			t.Errorf("%+v: news %t", step.s, news)
		}
		check.Equal(t, strings.Join(p.Since(c.ago(30)), " "), step.new, "after", step.s)
	}
	if all := p.All(); len(all) != 4 {
		t.Errorf("all: %+v", all)
	}
	c.now = c.now.Add(2 * time.Minute)
	p.SignedIn(Start{"web2", 1, c.now})
	check.EqualSlices(t, p.Since(time.Time{}), []string{"web2"}, "two minutes later")
}

// Whose table is full forgets, and then takes an old process for a new one: never the other way round.
func TestProcesses_Full(t *testing.T) {
	c := newClock()
	p := NewProcesses(time.Minute, c.read)
	for i := range perMinion + 1 {
		p.SignedIn(Start{"web1", Process(i + 1), c.ago(3600 - i)})
	}
	if len(p.known["web1"]) != perMinion || !p.SignedIn(Start{"web1", 1, c.now}) {
		t.Error("the first of many processes is not forgotten")
	}
	for i := range maxMinions + 1 {
		p.SignedIn(Start{fmt.Sprint(i), 1, c.ago(3600)})
	}
	if n := len(p.known); n > maxMinions || !p.SignedIn(Start{"web1", 2, c.now}) {
		t.Errorf("%d minions", n)
	}
}

func TestProcessOf(t *testing.T) {
	a, b := ProcessOf([]byte("a")), ProcessOf([]byte("b"))
	if a == b || a == Unnamed || a != ProcessOf([]byte("a")) || ProcessOf(nil) != Unnamed {
		t.Error(a, b, ProcessOf(nil))
	}
}

func plain(t testing.TB, fields map[string]any) []byte {
	t.Helper()
	b, err := saltwire.AppendAny(nil, fields, saltwire.Wire)
	require.NoError(t, err)
	return b
}

func TestAddress(t *testing.T) {
	for _, test := range []struct {
		kind     string
		target   any
		leaveOut []string
		want     string // empty: it cannot be said
	}{
		{"glob", "*", nil, "( * ) and *"},
		{"glob", "web*", []string{"web1"}, "( web* ) and * and not L@web1"},
		{"glob", "web*", []string{"a", "b"}, "( web* ) and * and not L@a,b"},
		{"list", []any{"a", "b"}, []string{"c"}, "( L@a,b ) and * and not L@c"},
		{"list", "a,b", nil, "( L@a,b ) and *"},
		{"pcre", "web[0-9]+|db(1|2)", nil, "( E@web[0-9]+|db(1|2) ) and *"},
		{"grain", "os:Debian", nil, "( G@os:Debian ) and *"},
		{"grain_pcre", "os:De.*", nil, "( P@os:De.* ) and *"},
		{"pillar", "role:web", nil, "( I@role:web ) and *"},
		{"pillar_pcre", "role:w.*", nil, "( J@role:w.* ) and *"},
		{"ipcidr", "10.0.0.0/8", nil, "( S@10.0.0.0/8 ) and *"},
		{"compound", "G@os:Debian or web1", []string{"a"}, "( G@os:Debian or web1 ) and * and not L@a"},
		{"compound", []any{"not", "web1"}, []string{"a"}, "( not web1 ) and * and not L@a"}, // a nodegroup
		{"range", "%web", nil, ""},
		{"compound", "T@vcf:esx1", nil, ""}, // not for the minion that manages it
		{"compound", []any{"web1", "or", "M@web2"}, nil, ""},
		{"compound", "a ) or ( b", nil, ""},
		{"compound", "( a or b", nil, ""},
		{"compound", "", nil, ""},
		{"compound", "( a or b ) and c", []string{"d"}, "( ( a or b ) and c ) and * and not L@d"},
		{"glob", "and", nil, ""},
		{"glob", "G@os:Debian", nil, ""},
		{"glob", "a b", nil, ""},
		{"glob", "", nil, ""},
		{"pcre", "a b", nil, ""},
		{"pcre", "bü", nil, ""},
		{"list", []any{"a,b"}, nil, ""},
		{"list", []any{}, nil, ""},
		{"glob", []any{"a"}, nil, ""},
		{"glob", "*", []string{"a b"}, ""},
		{"glob", "*", []string{"a,b"}, ""},
		{"glob", "*", []string{strings.Repeat("a", maxLeftOut+1)}, ""},
	} {
		in := plain(t, map[string]any{"jid": "1", "fun": "test.ping", "arg": []any{"*"}, "tgt": test.target,
			"tgt_type": test.kind, "ret": ""})
		out, err := Address(in, test.leaveOut)
		if test.want == "" {
			if !errors.Is(err, ErrTarget) {
				t.Errorf("%s %q without %q: %v, %q", test.kind, test.target, test.leaveOut, err, out)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q without %q: %v", test.kind, test.target, test.leaveOut, err)
			continue
		}
		got, err := readTarget(out)
		require.NoError(t, err)
		text := got.text
		if got.list != nil {
			text = strings.Join(got.list, " ")
		}
		if text != test.want || got.kind != "compound" {
			t.Errorf("%s %q without %q: %s %q", test.kind, test.target, test.leaveOut, got.kind, text)
		}
		if peek, err := saltwire.PeekPub(out); err != nil || peek.JID != "1" || peek.Fun != "test.ping" {
			t.Errorf("%s %q: %+v, %v", test.kind, test.target, peek, err)
		}
	}
}

func TestAddressRefuses(t *testing.T) {
	for _, fields := range []map[string]any{
		{"tgt": "*"},
		{"tgt": "os|Debian", "tgt_type": "grain", "delimiter": "|"},
		{"tgt": []any{[]any{}}, "tgt_type": "list"},
	} {
		if _, err := Address(plain(t, fields), nil); !errors.Is(err, ErrTarget) {
			t.Errorf("%v: %v", fields, err)
		}
	}
}

// FuzzAddress: whatever a master publishes, what comes out is a publication with the same job.
func FuzzAddress(f *testing.F) {
	f.Add(plain(f, map[string]any{"jid": "1", "fun": "test.ping", "tgt": "*", "tgt_type": "glob"}), "web1")
	f.Add(plain(f, map[string]any{"jid": "1", "tgt": []any{"a", "b"}, "tgt_type": "compound", "delimiter": ":"}), "")
	f.Fuzz(func(t *testing.T, in []byte, id string) {
		peek, err := saltwire.PeekPub(in)
		if err != nil {
			return
		}
		out, err := Address(in, []string{id})
		if err != nil {
			return
		}
		got, err := saltwire.PeekPub(out)
		if err != nil || got.JID != peek.JID || got.Fun != peek.Fun || got.TgtType != "compound" {
			t.Fatalf("%+v became %+v: %v", peek, got, err)
		}
	})
}
