package peer

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// secured dials from a loopback address by a protocol that any certificate may speak.
func secured(t *testing.T, p *Port, i *Identity, proto, from string) *tls.Conn {
	t.Helper()
	c := tls.Client(dialRaw(t, p, from), &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{i.currentCert().cert}, NextProtos: []string{proto},
	})
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	require.NoError(t, c.Handshake())
	return c
}

// proves says whether a joiner with the secret gets as far as the member's own proof.
func proves(t *testing.T, p *Port, from string) error {
	t.Helper()
	i := identity(t, "joiner")
	c := secured(t, p, i, ProtoJoin, from)
	require.NoError(t, writeFrame(c, frameHello, helloFor(t, p, i, testSecret, roleJoiner)(c)))
	kind, body, err := readFrame(c, maxCluster)
	if err == nil && kind != frameProof {
		err = fmt.Errorf("an answer of type %d: %x", kind, body)
	}
	return err
}

// Strangers who try to join from many addresses, and have no proof, do not keep waiting who has one, nor a node that
// asks about itself.
func TestStrangersFromManyAddresses(t *testing.T) {
	m := newMesh(t)
	p := m.member("member", func(c *Config) {
		c.Join = &admission{}
		c.Standing = func(node.ID, node.Fingerprint) Standing { return Standing{Rev: 7} }
	})
	stranger := identity(t, "stranger")
	for n := range 100 {
		_ = secured(t, p, stranger, ProtoJoin, fmt.Sprintf("127.0.1.%d", n+1)).Close()
	}
	check.NoError(t, proves(t, p, "127.0.0.2"), "a joiner with the secret")
	if got, err := m.member("former", nil).AskFormer(t.Context(), entryOf(p)); err != nil || got.Rev != 7 {
		t.Errorf("a former member hears %+v, %v", got, err)
	}
}

// However many addresses hold a place for as long as they may, the next one gets a place: that of the oldest of those
// who have the most. Who has proved the secret has none to lose.
func TestPlacesOfStrangers(t *testing.T) {
	block := make(chan struct{})
	unblock := sync.OnceFunc(func() { close(block) })
	defer unblock()
	a := &admission{sign: func(message []byte) (sig, pub []byte, err error) {
		<-block
		return clusterKeys()[0].SignChannel(message)
	}}
	const all = 6
	p := newMesh(t).member("member", func(c *Config) {
		c.Join, c.Limits.Handshakes, c.Limits.HandshakesPerAddr = a, all, 4
		c.Limits.Handshake, c.Limits.JoinProof = testTimeout, testTimeout
	})
	i := identity(t, "joiner")
	proven := secured(t, p, i, ProtoJoin, "127.0.0.2")
	require.NoError(t, writeFrame(proven, frameHello, helloFor(t, p, i, testSecret, roleJoiner)(proven)))
	kind, _, err := readFrame(proven, maxCluster)
	require.NoError(t, err)
	check.Equal(t, kind, byte(frameProof), "the answer to a right proof")

	var silent []net.Conn
	for n := range 3 * all {
		silent = append(silent, dialRaw(t, p, fmt.Sprintf("127.0.%d.1", n+1)))
	}
	patience.WaitSettled(t, func() string {
		if n := countClosed(silent); n != 2*all {
			return fmt.Sprintf("%d of %d silent strangers are cut", n, len(silent))
		}
		return ""
	})
	if n := countClosed(silent[2*all:]); n != 0 {
		t.Errorf("%d of the latest are cut", n)
	}
	check.NoError(t, proves(t, p, "127.0.0.2"), "a joiner with the secret")
	unblock()
	if kind, _, err := readFrame(proven, maxCluster); err != nil || kind != frameCluster {
		t.Errorf("who had proved the secret before hears %d, %v", kind, err)
	}
}

func TestGate(t *testing.T) {
	var g gate
	g.init(Limits{Handshakes: 6, HandshakesPerAddr: 4, MemberHandshakes: 2})
	cut := map[string]int{}
	take := func(addr string) (leave func(), ok bool) {
		return g.takePlace(netip.MustParseAddr(addr), false, func() { cut[addr]++ })
	}
	taken := func(addr string, want bool) (leave func()) {
		t.Helper()
		leave, ok := take(addr)
		check.Equal(t, ok, want, addr)
		return leave
	}
	for range 4 {
		taken("198.51.100.1", true)
	}
	taken("198.51.100.1", false) // all that an address may have
	taken("198.51.100.2", true)
	leave := taken("198.51.100.2", true)
	taken("203.0.113.1", true) // another network
	check.Equal(t, cut["198.51.100.1"], 1, "places that the address with the most has lost")
	taken("203.0.113.1", true)
	taken("203.0.113.1", true)
	check.Equal(t, cut["198.51.100.1"], 3, "places that the oldest of the network with the most has lost")
	taken("203.0.113.1", false) // its network has as many as the other
	leave()
	leave() // twice is harmless
	taken("203.0.113.1", true)
	if _, ok := g.takePlace(netip.MustParseAddr("192.0.2.1"), true, nil); !ok {
		t.Error("a member has no place")
	}
	check.Equal(t, g.waiting.Len(), 6, "places of strangers")
}
