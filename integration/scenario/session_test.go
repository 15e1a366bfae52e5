//go:build integration

package scenario

import (
	"bytes"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// Session keys change with the AES key, on all nodes, when an operator wants it and with age. A recorded request is
// served under a former key, and refused when that is not good any more.
func testSessions(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	m := &byteMinion{
		host: c.LB.Host(), id: "recorded", key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
		pin: masterPub(t, c.Nodes[0].Master),
	}
	admit(t, c, m)
	defer deleted(t, c.Nodes[0], m.id)
	heard, err := m.signIn(ctx, c.Nodes[0].Addr)
	if labtest.Must(t, err); heard != "accepted" {
		t.Fatalf("heard %q", heard)
	}
	first := m.got.session
	recorded, nonce, err := m.seal("_file_envs", nil)
	labtest.Must(t, err)
	replay := func(n *lab.Node) []byte {
		t.Helper()
		answer, err := m.exchange(ctx, n.Addr, recorded)
		labtest.Must(t, err)
		return answer
	}
	served := func() {
		t.Helper()
		for _, n := range c.Nodes {
			answer := replay(n)
			sealed, _ := saltwire.Bytes(answer)
			plain, err := saltcrypt.NewCrypticle(first).Open(nil, sealed)
			if err != nil || !bytes.HasPrefix(plain, []byte(nonce)) {
				t.Errorf("%s answers %.40q: %v", n.Name, answer, err)
			}
		}
	}
	rotated := func(at *lab.Node) {
		t.Helper()
		before := m.got.session
		must(t, at.Daemon, "rotate", "aes", "--yes")
		for i, n := range c.Nodes {
			eventually(t, time.Minute, "another session key on "+n.Name, func() bool {
				heard, err := m.signIn(ctx, n.Addr)
				return err == nil && heard == "accepted" && m.got.session != before
			})
			if got := m.got.session; i > 0 {
				labtest.Must(t, m.works(ctx, c.Nodes[0].Addr)) // one session for all nodes
			} else if got == first {
				t.Error("the first session key is back")
			}
		}
	}
	served()
	rotated(c.Nodes[1])
	served()
	rotated(c.Nodes[0])
	rotateEach(t, c.Nodes[0], time.Second) // nodes keep four former session keys at most
	for _, n := range c.Nodes {
		eventually(t, time.Minute, "the recorded request to be refused on "+n.Name, func() bool {
			return bytes.Equal(replay(n), saltwire.BadLoad())
		})
	}
	rotateEach(t, c.Nodes[0], 24*time.Hour)
}

// rotateEach makes a node the leader, and has it replace AES key and session seed whenever they are so old.
func rotateEach(t *testing.T, n *lab.Node, age time.Duration) {
	t.Helper()
	labtest.Must(t, n.Daemon.Configure(eventSettings, lab.Settings{"rotate_interval": age.String()}))
	upgradeDaemon(t, n)
	must(t, n.Daemon, "transfer", n.Name)
}
