//go:build integration

package scenario

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"saltclusterd/gossip/peer"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// begun is how far somebody gets on each kind of connection between nodes before the other side has to answer: raft
// waits for a message, gossip for the rest of one (the exchange of all it knows), HTTP/2 for a request.
var begun = map[string]string{
	peer.ProtoRaft: "", peer.ProtoGossip: "\xf4\x03",
	peer.ProtoHTTP: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
}

// cutWithin is how long after a removal the other nodes have to cut what is open: they hear of it with the next message
// of the leader.
const cutWithin = 3 * time.Second

// What a node has open to any other one when it is removed is cut there, with half a message under way, and not taken
// up again.
func testRemovedIsCut(t *testing.T, m *membersLab) {
	ctx, m1, w2 := t.Context(), m.Nodes[0], m.witness[1]
	loot := stolen(t, w2)
	ended := map[string]chan error{}
	for _, n := range m.Nodes {
		for proto, words := range begun {
			c := speaking(t, w2.Host(), n, loot, proto)
			_, err := c.Write([]byte(words))
			labtest.Must(t, err)
			over := make(chan error, 1)
			go func() { // ends with the connection
				_, err := io.Copy(io.Discard, c)
				over <- err
			}()
			ended[proto+" with "+n.Name] = over
		}
	}
	for what, over := range ended {
		select {
		case err := <-over:
			t.Errorf("%s has ended before the removal: %v", what, err)
		default:
		}
	}
	must(t, m1.Daemon, "remove", "--yes", "w2")
	late := time.After(cutWithin)
	for what, over := range ended {
		select {
		case err := <-over:
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Errorf("%s was not cut", what)
			}
		case <-late:
			t.Errorf("%s is open %s after the removal", what, cutWithin)
		}
	}
	for _, n := range m.Nodes {
		if err := admitted(t, w2.Host(), n, loot); err == nil {
			t.Errorf("%s lets in the certificate of who was removed", n.Name)
		}
	}
	// it has to hear of its removal first
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "w2 to join again", func(ctx context.Context) error {
		res, err := w2.Ctl(ctx, "join", m1.Addr, "--wait=false")
		return errors.Join(err, res.Err())
	}))
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness alive")
}

// speaking is a connection for a protocol that a node has let in.
func speaking(t *testing.T, from *lab.Host, to *lab.Node, cert tls.Certificate, proto string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	raw, err := from.Dial(ctx, "tcp", to.Addr+":4520")
	labtest.Must(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(2 * time.Minute))
	c := tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		Certificates: []tls.Certificate{cert}, NextProtos: []string{proto}})
	labtest.Must(t, c.HandshakeContext(ctx))
	if proto != peer.ProtoHTTP {
		_, err = io.ReadFull(c, make([]byte, 1)) // with TLS 1.3 a refusal comes after the handshake
		labtest.Must(t, err)
	}
	return c
}
