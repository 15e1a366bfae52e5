package edge

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire/saltwiretest"
	"saltclusterd/sidecar/zmtp"
)

// wire is a connection for fuzzing whose other end reads everything.
func wire(f *testing.F) *net.TCPConn {
	f.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(f, err)
	near, err := ln.Accept()
	require.NoError(f, err)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	f.Cleanup(func() { near.Close(); far.Close() })
	return near.(*net.TCPConn)
}

// pour feeds in to handleInput in pieces until it refuses.
func pour(in []byte, piece int, hear func([]byte) error) error {
	for len(in) > 0 {
		n := min(piece, len(in))
		if err := hear(in[:n]); err != nil {
			return err
		}
		in = in[n:]
	}
	return nil
}

// FuzzReqConversation is everything a peer of the request port can say. What
// it asks is answered, and nothing stays counted.
func FuzzReqConversation(f *testing.F) {
	f.Add(zmtp.AppendMessage(hello("REQ"), nil, []byte("x")), uint8(7))
	f.Add(zmtp.AppendMessage(hello("DEALER"), []byte("hop"), nil, []byte("x")), uint8(200))
	f.Add(zmtp.AppendPing(zmtp.AppendMessage(hello("REQ"), nil, nil), 0, []byte("c")), uint8(1))
	for _, h := range hostile {
		f.Add(h.say, uint8(50))
	}
	stockTraffic(f, func(request []byte) {
		f.Add(zmtp.AppendMessage(hello("REQ"), nil, request), uint8(255))
		f.Add(tcpFrame("mid", request), uint8(200))
	})
	e, err := NewReqEdge(ReqConfig{Addrs: []string{"-"}, Handler: handlerFunc(echo), MaxMemory: 1 << 20})
	require.NoError(f, err)
	tcp := wire(f)
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		c := newReqConn(e)
		require.NoError(t, c.Init(e.listener.Accepted(tcp)))
		if err := pour(in, int(piece)+1, c.handleInput); errors.Is(err, errPaused) {
			t.Fatal("paused though everything is answered at once")
		}
		_ = c.hold(0)
		if s := e.Stats(); s.InFlight != 0 || s.Memory != 0 || c.slots.Used() != 0 {
			t.Fatalf("%+v", s)
		}
		_ = tcp.SetDeadline(time.Time{})
	})
}

// FuzzSubConversation is everything a peer of the publish port can say.
func FuzzSubConversation(f *testing.F) {
	f.Add(zmtp.AppendSubscribe(hello("SUB"), nil), uint8(7))
	f.Add(zmtp.AppendCancel(zmtp.AppendSubscribe(hello("XSUB"), []byte("broadcast")), []byte("broadcast")), uint8(1))
	f.Add(zmtp.AppendSubscription(zmtp.AppendSubscription(hello("SUB"), nil, true), []byte("a"), true), uint8(90))
	f.Add(zmtp.AppendPing(hello("SUB"), 0, []byte("c")), uint8(9))
	for _, h := range hostile {
		f.Add(h.say, uint8(50))
	}
	f.Add(append(tcpFrame("", text("m1")), tcpFrame("", text("x"))...), uint8(5))
	f.Add(append(tcpFrame("", text("x")), tcpFrame("", text("m1"))...), uint8(90))
	e, err := NewPubEdge(PubConfig{Addrs: []string{"-"}, Shards: 1, MaxSubscriptions: 3, MaxTopic: 10, Identify: said,
		Targeted: func() bool { return true }})
	require.NoError(f, err)
	tcp := wire(f)
	h := e.shards[0]
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		s := &sub{edge: e, shard: h}
		require.NoError(t, s.Init(e.listener.Accepted(tcp)))
		_ = pour(in, int(piece)+1, s.handleInput)
		e.Publish(Publication{Body: []byte("x"), Topics: []string{"broadcast", "aaaa"}})
		h.round()
		if len(s.topics) > 3 {
			t.Fatalf("%d subscriptions", len(s.topics))
		}
		h.remove(s)
		if len(h.members) != 0 || len(h.index.byTopic) != 0 || len(h.index.lengths) != 0 || e.Stats().Subscribers != 0 {
			t.Fatal("something is left of it")
		}
		_ = tcp.SetDeadline(time.Time{})
	})
}

// stockTraffic adds what stock daemons of three versions sent (sidecar/saltwire/testdata/golden) to a corpus.
func stockTraffic(f *testing.F, add func(request []byte)) {
	f.Helper()
	for _, v := range saltwiretest.Recorded(f, "../saltwire") {
		for _, row := range append(v.Auth, v.Requests[:min(5, len(v.Requests))]...) {
			add(row.Request)
		}
	}
}
