package consensus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/require"
)

// message is a message of raft as it is sent, with whatever follows it.
func message(t testing.TB, kind byte, cmd any, then ...byte) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	require.NoError(t, codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(cmd))
	return append(b.Bytes(), then...)
}

func header(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}

// tell sends a message to a node and reads raft's answer: the error in it, and whether there was any.
func tell(t *testing.T, c net.Conn, msg []byte) (text string, answered bool) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(testTimeout)))
	_, _ = c.Write(msg) // it may be refused before it is read
	dec := codec.NewDecoder(bufio.NewReader(c), &codec.MsgpackHandle{})
	var answer map[string]any
	err := errors.Join(dec.Decode(&text), dec.Decode(&answer))
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatal("neither an answer nor the end of the connection")
	}
	return text, err == nil
}

// What a member's certificate lets in where raft listens: none of this may end the process, now or at its next start,
// nor leave it with a term, an index or a snapshot from which no honest leader brings it back.
func hostileMessages(t testing.TB, term, last, lastTerm uint64) map[string][]byte {
	h := header("m3")
	entry := func(l *raft.Log) []byte {
		return message(t, kindAppend, &raft.AppendEntriesRequest{
			RPCHeader: h, Term: term + 1, PrevLogEntry: last, PrevLogTerm: lastTerm, Entries: []*raft.Log{l},
			LeaderCommitIndex: math.MaxUint64,
		})
	}
	snapshot := func(change func(*raft.InstallSnapshotRequest), then string) []byte {
		c := &raft.InstallSnapshotRequest{
			RPCHeader: h, SnapshotVersion: 1, Term: term + 1, LastLogIndex: last + 100, LastLogTerm: term,
			Configuration: raft.EncodeConfiguration(soleVoter("m3")), ConfigurationIndex: 1, Size: int64(len(then)),
		}
		change(c)
		return message(t, kindSnapshot, c, []byte(then)...)
	}
	same := func(*raft.InstallSnapshotRequest) {}
	two := raft.Configuration{Servers: append(soleVoter("m3").Servers, soleVoter("m3").Servers...)}
	return map[string][]byte{
		"a configuration that is none": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogConfiguration,
			Data: []byte("\xc1 no")}),
		"a configuration without votes": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(raft.Configuration{})}),
		"a configuration with one twice": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(two)}),
		"a configuration with an address": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "m3", Address: "192.0.2.1:1"}}})}),
		"an entry of an unknown kind": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: 77}),
		"peers as they were of old": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogAddPeerDeprecated,
			Data: []byte{0x91, 0xa1, 'x'}}),
		"an entry of a later version": entry(&raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogCommand,
			Data: []byte(`{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"tree.advance","d":{}}]}]}`)}),
		"no entry":                 entry(nil),
		"an entry far away":        entry(&raft.Log{Index: last + 1000, Term: term + 1, Type: raft.LogNoop}),
		"the last entry of all":    entry(&raft.Log{Index: math.MaxUint64, Term: term + 1, Type: raft.LogNoop}),
		"an entry of a later term": entry(&raft.Log{Index: last + 1, Term: term + 9, Type: raft.LogNoop}),
		"the last term of all": message(t, kindAppend,
			&raft.AppendEntriesRequest{RPCHeader: h, Term: math.MaxUint64}),
		"the last term, at a vote": message(t, kindVote,
			&raft.RequestVoteRequest{RPCHeader: h, Term: math.MaxUint64, LastLogIndex: 1 << 40, LastLogTerm: 1,
				LeadershipTransfer: true}),
		"the last term, before a vote": message(t, kindPreVote,
			&raft.RequestPreVoteRequest{RPCHeader: h, Term: math.MaxUint64}),
		"nobody's vote": message(t, kindVote, &raft.RequestVoteRequest{Term: term + 1}),
		"a name that is a path": message(t, kindVote,
			&raft.RequestVoteRequest{RPCHeader: header("../x"), Term: term + 1}),
		"a snapshot that is none":         snapshot(same, "not a snapshot"),
		"a snapshot of a later version":   snapshot(same, `{"t":"from.the.future","v":9}`+"\n"),
		"an empty snapshot":               snapshot(same, ""),
		"a snapshot without end":          snapshot(func(c *raft.InstallSnapshotRequest) { c.Size = math.MaxInt64 }, "{"),
		"a snapshot of less than nothing": snapshot(func(c *raft.InstallSnapshotRequest) { c.Size = -1 }, ""),
		"a snapshot of what is long past": snapshot(func(c *raft.InstallSnapshotRequest) {
			c.LastLogIndex, c.LastLogTerm = 1, 1
		}, "x"),
		"a snapshot with no configuration": snapshot(func(c *raft.InstallSnapshotRequest) {
			c.Configuration = []byte("\xc1")
		}, "x"),
		"a snapshot of old": snapshot(func(c *raft.InstallSnapshotRequest) {
			c.SnapshotVersion = 0
			c.Peers = []byte("\xc1")
		}, "x"),
		"an unknown kind of message": {77, 0x80},
		"a message that is none":     {kindAppend, 0xc1},
		"entries without number":     append(message(t, kindAppend, map[string]any{"Term": term + 1}), 0xff),
		"more entries than there is memory": append([]byte{kindAppend, 0x81, 0xa7},
			append([]byte("Entries"), append([]byte{0xdd, 0xff, 0xff, 0xff, 0xff},
				bytes.Repeat([]byte{0xc0}, maxCommand+1)...)...)...),
		"arrays in arrays": append([]byte{kindAppend, 0x81, 0xa1, 'x'},
			bytes.Repeat([]byte{0x91}, 1<<20)...),
	}
}

func TestHostileRaft(t *testing.T) {
	c := form(t, 3, nil)
	for _, id := range []node.ID{"m1", "m2"} { // one of them leads, or none does
		n := c.nodes[id]
		r, err := n.runningRaft()
		require.NoError(t, err)
		var term uint64
		entry := func() uint64 { // raft's own, for the entry that the others continue
			var l raft.Log
			require.NoError(t, n.store.logs.GetLog(r.LastIndex(), &l))
			return l.Term
		}
		names := slices.Collect(maps.Keys(hostileMessages(t, 1, 1, 1)))
		const later = "a snapshot of a state from the end of time"
		for _, name := range append(names, later) {
			term = r.CurrentTerm()
			conn, err := fabricPort{c.f, "m3"}.Dial(t.Context(), id, Proto)
			require.NoError(t, err)
			msg := hostileMessages(t, term, r.LastIndex(), entry())[name]
			if name == later {
				msg = stateOfLater(t, n, term)
			}
			text, answered := tell(t, conn, msg)
			_ = conn.Close()
			if answered && text == "" {
				t.Errorf("%s: %s took it", name, id)
			}
			require.NoError(t, n.Err(), name, id, "has stopped")
			if now := r.CurrentTerm(); now > term+10 { // an election of theirs may come in between
				t.Fatalf("%s: the term of %s is %d after %d", name, id, now, term)
			}
		}
		if got := len(mustList(t, n)); got > 0 {
			t.Errorf("%s keeps %d snapshots of somebody else", id, got)
		}
	}
	for _, id := range []node.ID{"m1", "m2"} { // what they have on the disk is good
		c.stop(id)
		c.start(id)
	}
	c.must(c.nodes["m3"], accept("web1"))
	c.eventually("all know the key", func() (bool, string) {
		for id, n := range c.nodes {
			if _, ok := n.View().Key("web1"); !ok {
				return false, string(id)
			}
		}
		return true, ""
	})
}

// stateOfLater is a snapshot of the state as it is, but for its index, after which nothing would be applied.
func stateOfLater(t *testing.T, n *Node, term uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	view := n.View()
	require.NoError(t, view.WriteSnapshot(&b))
	was := fmt.Sprintf(`"index":%d`, view.Index())
	if !strings.Contains(b.String(), was) {
		t.Fatal("the state does not say of which entry it is")
	}
	text := strings.Replace(b.String(), was, fmt.Sprintf(`"index":%d`, uint64(math.MaxUint64)), 1)
	return message(t, kindSnapshot, &raft.InstallSnapshotRequest{
		RPCHeader: header("m3"), SnapshotVersion: 1, Term: term + 1, LastLogIndex: view.Index() + 100, LastLogTerm: term,
		Configuration: raft.EncodeConfiguration(soleVoter("m3")), ConfigurationIndex: 1, Size: int64(len(text)),
	}, []byte(text)...)
}

func mustList(t *testing.T, n *Node) []*raft.SnapshotMeta {
	t.Helper()
	l, err := n.store.snaps.List()
	require.NoError(t, err)
	return l
}

// A message that never ends holds nobody up but its sender, nor do many connections.
func TestHostileRaftTakesItsTime(t *testing.T) {
	c := form(t, 2, func(cfg *Config) { cfg.Remote = func(net.Conn) (node.ID, bool) { return "", false } })
	var open []net.Conn
	for i := range 40 {
		conn, err := fabricPort{c.f, "m2"}.Dial(t.Context(), "m1", Proto)
		require.NoError(t, err)
		open = append(open, conn)
		req := &raft.InstallSnapshotRequest{
			RPCHeader: header("m2"), SnapshotVersion: 1, Term: 1 << 20, LastLogIndex: 1 << 20, LastLogTerm: 1,
			Configuration: raft.EncodeConfiguration(soleVoter("m2")), ConfigurationIndex: 1, Size: maxRestore,
		}
		msg := message(t, kindSnapshot, req, '{')
		if i%2 == 1 {
			msg = msg[:3]
		}
		if _, err := conn.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		c.must(c.nodes["m2"], accept(string(rune('a'+i))))
	}
	for i, conn := range open {
		if i%2 == 1 { // a snapshot may take as long as one of its size does
			_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("a message that does not go on: %v", err)
			}
		}
		_ = conn.Close()
	}
}

// Nobody speaks for another one, and one member's connections have a bound.
func TestHostileRaftUnderAnotherName(t *testing.T) {
	dir := t.TempDir()
	m1, thief := startReal(t, "m1", dir), startReal(t, "m2", dir)
	init := initFor("m1")
	init.Founder = m1.member()
	require.NoError(t, m1.node.Bootstrap(t.Context(), init))
	m := thief.member()
	thief.seed.Store(&[]state.Member{m1.member(), m})
	if _, err := m1.node.Propose(t.Context(),
		state.MemberAdd{ID: m.ID, Addr: m.Addr, Fingerprint: m.Fingerprint, Weight: 100}); err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		c, err := thief.port.Dial(ctx, "m1", peer.ProtoRaft)
		require.NoError(t, err)
		return c
	}
	term := m1.node.Status().Term
	for name, msg := range map[string][]byte{
		"a vote": message(t, kindVote, &raft.RequestVoteRequest{RPCHeader: header("m1"), Term: term + 1,
			LeadershipTransfer: true}),
		"a leader": message(t, kindAppend, &raft.AppendEntriesRequest{RPCHeader: header("m3"), Term: term + 1}),
		"two names": message(t, kindAppend, &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte("m2"),
			Addr: []byte("m1")}, Term: term + 1}),
		"an upheave": message(t, kindTimeout, &raft.TimeoutNowRequest{RPCHeader: header("m2")}),
	} {
		c := dial()
		if text, answered := tell(t, c, msg); answered {
			t.Errorf("%s: answered %q", name, text)
		}
		_ = peer.Cut(c)
	}
	if s := m1.node.Status(); s.Term != term || !m1.node.Serving() {
		t.Errorf("%+v, after term %d", s, term)
	}
	var open []net.Conn
	for range maxInbound + 8 {
		open = append(open, dial())
	}
	eventually(t, "the connections beyond the bound are closed", func() (bool, string) {
		closed := 0
		for _, c := range open {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); err != nil && !strings.Contains(err.Error(), "timeout") {
				closed++
			}
		}
		return closed >= 8, ""
	})
	for _, c := range open {
		_ = peer.Cut(c)
	}
}

func TestFar(t *testing.T) {
	for _, tc := range []struct {
		n, now uint64
		want   bool
	}{
		{0, 0, false}, {5, 9, false}, {farNumber, 0, false}, {farNumber + 1, 0, true}, {math.MaxUint64, 3, true},
		{farNumber + 1, farNumber, false}, {farNumber + 9, farNumber + 8, false},
		{farNumber + 2*farStep, farNumber + 1, true},
		{math.MaxUint64, math.MaxUint64 - 1, false},
	} {
		if got := isTooFar(tc.n, tc.now); got != tc.want {
			t.Errorf("%d after %d: %v", tc.n, tc.now, got)
		}
	}
}

// FuzzRaftMessages: whatever is read and believed has what raft takes for granted.
func FuzzRaftMessages(f *testing.F) {
	for _, msg := range hostileMessages(f, 3, 7, 2) {
		if len(msg) < 4096 {
			f.Add(msg)
		}
	}
	f.Add(message(f, kindAppend, &raft.AppendEntriesRequest{
		RPCHeader: header("m3"), Term: 4, PrevLogEntry: 7, PrevLogTerm: 2, Entries: []*raft.Log{
			{Index: 8, Term: 3, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(soleVoter("m1"))},
			{Index: 9, Term: 4, Type: raft.LogCommand, Data: []byte("{}")},
		},
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		r := &boundedReader{Reader: bufio.NewReader(bytes.NewReader(b[1:]))}
		cmd, err := readCommand(b[0], codec.NewDecoder(r, &codec.MsgpackHandle{}), r, &sender{})
		if err != nil || validateRPC(cmd, "", position{term: 3, last: 7, applied: 5}) != nil {
			return
		}
		switch c := cmd.(type) {
		case *raft.AppendEntriesRequest:
			for i, e := range c.Entries {
				if e.Index != c.PrevLogEntry+1+uint64(i) || e.Type > raft.LogConfiguration {
					t.Fatalf("entry %d: %+v", i, e)
				}
				if e.Type == raft.LogConfiguration && len(raft.DecodeConfiguration(e.Data).Servers) == 0 {
					t.Fatal("a configuration of nobody")
				}
			}
		case *raft.InstallSnapshotRequest:
			if len(raft.DecodeConfiguration(c.Configuration).Servers) == 0 || c.Size < 0 || c.LastLogIndex < 5 {
				t.Fatalf("%+v", c)
			}
		}
	})
}
