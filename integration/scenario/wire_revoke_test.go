//go:build integration

package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// ear is a subscription that keeps everything it hears.
type ear struct {
	on   string
	mu   sync.Mutex
	all  [][]byte
	stop func()
}

// hearAll subscribes the minion at every node.
func (m *byteMinion) hearAll(t *testing.T, c *lab.Cluster) (ears []*ear) {
	t.Helper()
	for _, n := range c.Nodes {
		sub, err := m.connect(t.Context(), n.Addr, "4505", "SUB")
		labtest.Must(t, err)
		labtest.Must(t, sub.Subscribe(nil))
		e := &ear{on: n.Name, stop: func() { sub.Close() }}
		t.Cleanup(e.stop)
		go func() {
			for {
				parts, err := sub.ReadMessage()
				if err != nil {
					return
				}
				e.mu.Lock()
				e.all = append(e.all, parts[len(parts)-1])
				e.mu.Unlock()
			}
		}()
		ears = append(ears, e)
	}
	return ears
}

func (e *ear) heard() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// jobs returns which masters' test.ping can be read with the key, of what was heard from mark on. What can be read must
// be signed and have serials that grow.
func (e *ear) jobs(t *testing.T, key saltcrypt.Key, master *saltcrypt.PublicKey, mark int) map[string]int {
	t.Helper()
	by, serial := map[string]int{}, uint64(0)
	for _, body := range e.heard()[mark:] {
		env, err := saltwire.ParsePub(body)
		labtest.Must(t, err)
		plain, err := saltcrypt.NewCrypticle(key).Open(nil, env.Load)
		if err != nil {
			continue
		}
		p, err := saltwire.PeekPub(plain)
		labtest.Must(t, err)
		// for nobody, and without a serial: who has just come is made to sign in by it, if it cannot read it
		if p.JID == "0" {
			continue
		}
		if p.Fun == "test.ping" {
			by[p.MasterID]++
		}
		if env.SigAlgo != saltcrypt.PKCS1v15SHA224 {
			t.Errorf("%s: job %s is signed with %q", e.on, p.JID, env.SigAlgo)
		} else if err := master.Verify(env.SigAlgo, env.Load, env.Sig); err != nil {
			t.Errorf("%s: job %s: %v", e.on, p.JID, err)
		}
		if p.Serial <= serial {
			t.Errorf("%s: serial %d after %d", e.on, p.Serial, serial)
		}
		serial = p.Serial
	}
	return by
}

// A minion whose key was taken away, on any node, by any version's salt-key, reads nothing any more on any node,
// although it keeps connection and keys. The others hear every job and sign in once.
func testRevocation(t *testing.T, c *lab.Cluster, bus *listeners) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	var all []*byteMinion
	for _, id := range []string{"stayer", "leaver-1", "leaver-2", "leaver-3", "leaver-4"} {
		all = append(all, &byteMinion{
			host: c.Minions[0].Host(), id: id, key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
			pin: masterPub(t, c.Nodes[0].Master),
		})
	}
	admit(t, c, all...)
	commandsServed(t, c, bus, all[0])
	for i, n := range c.Nodes {
		option, then := []string{"-d"}, "pending"
		if i == 1 {
			option, then = []string{"--include-accepted", "-r"}, "rejected"
		}
		t.Run(fmt.Sprintf("salt-key %s on %s (%s)", option[len(option)-1], n.Name, n.Master.Version), func(t *testing.T) {
			revoke(t, c, bus, n, option, all[i+1], all[0], then, nil)
		})
	}
	// A rotation for another reason, which lets minions keep the former key for a while, must not cover the deletion.
	t.Run("a deletion, and a rotation on another node", func(t *testing.T) {
		revoke(t, c, bus, c.Nodes[0], nil, all[4], all[0], "pending", func() {
			res, err := c.Nodes[1].Daemon.Ctl(t.Context(), "rotate", "aes", "--yes")
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
		})
	})
}

// admit has minions accepted by salt-key.
func admit(t *testing.T, c *lab.Cluster, all ...*byteMinion) {
	t.Helper()
	ctx, n := t.Context(), c.Nodes[0]
	for _, m := range all { // a master that has just started may take longer than a minion waits, which then tries again
		labtest.Must(t, lab.Eventually(ctx, time.Minute, m.id+" to be pending", func(ctx context.Context) error {
			got, err := m.signIn(ctx, n.Addr)
			if err == nil && got != "pending" {
				t.Fatalf("%s hears %q", m.id, got)
			}
			return err
		}))
	}
	res, err := n.Master.Run(ctx, "salt-key", "-y", "-A")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	for _, m := range all {
		keyIs(t, c, m.id, "minions", time.Minute)
	}
}

// revoke takes the leaver's key away, by salt-key with that option or else by saltclusterctl, and calls rotate, unless
// that is nil, at once.
func revoke(t *testing.T, c *lab.Cluster, bus *listeners, n *lab.Node, option []string, leaver, stayer *byteMinion,
	then string, rotate func()) {
	ctx := t.Context()
	master, err := saltcrypt.ParsePublicKey(leaver.pin)
	labtest.Must(t, err)
	heard, err := leaver.signIn(ctx, n.Addr)
	if labtest.Must(t, err); heard != "accepted" {
		t.Fatalf("%s hears %q", leaver.id, heard)
	}
	ears := leaver.hearAll(t, c)
	old := leaver.got.aes
	eventually(t, time.Minute, "the leaver to hear jobs of "+n.Name, func() bool {
		publish(t, c, n)
		return !slices.ContainsFunc(ears, func(e *ear) bool { return e.jobs(t, old, master, 0)[n.Name] == 0 })
	})
	signedIn := map[string]int{}
	for _, id := range c.IDs() {
		signedIn[id] = len(bus.signIns(id))
	}

	if option == nil {
		deleted(t, n, leaver.id) // salt-key's fourth within a minute would be held
	} else {
		res, err := n.Master.Run(ctx, "salt-key", append([]string{"-y"}, append(option, leaver.id)...)...)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
	}
	gone, rotations := time.Now(), 1
	if rotate != nil {
		rotate()
		// Stock minions seal requests with the session key of their start until it is refused, as it is after five
		// rotations. They sign in then, and sign what they send again in a way that no master can verify: this return is lost.
		async(t, n, "test.ping")
		rotations += 2
	}
	publish(t, c, n) // at once: everybody hears it, whatever it is sealed with
	for _, at := range c.Nodes {
		eventually(t, 30*time.Second, "another AES key on "+at.Name, func() bool {
			heard, err := stayer.signIn(ctx, at.Addr)
			return err == nil && heard == "accepted" && stayer.got.aes != old
		})
	}
	t.Logf("the AES key has changed on all nodes within %s", time.Since(gone).Round(time.Millisecond))
	marks := map[*ear]int{}
	for _, e := range ears {
		marks[e] = len(e.heard())
	}
	for _, from := range c.Nodes {
		publish(t, c, from)
	}
	for _, e := range ears {
		eventually(t, 30*time.Second, "jobs of all masters on "+e.on, func() bool {
			if len(e.jobs(t, stayer.got.aes, master, marks[e])) == len(c.Nodes) {
				return true
			}
			if rotate != nil { // the key may have changed once more
				_, _ = stayer.signIn(ctx, n.Addr)
				for _, from := range c.Nodes {
					publish(t, c, from)
				}
			}
			return false
		})
		if read := e.jobs(t, old, master, marks[e]); len(read) > 0 {
			t.Errorf("%s still reads on %s: %v", leaver.id, e.on, read)
		}
		e.stop()
	}
	for _, at := range c.Nodes {
		if err := leaver.works(ctx, at.Addr); err == nil {
			t.Errorf("%s is still served by %s", leaver.id, at.Name)
		}
		commandsRefused(t, at, leaver)
		heard, err := leaver.signIn(ctx, at.Addr)
		if labtest.Must(t, err); heard != then {
			t.Errorf("%s hears %q from %s, not %q", leaver.id, heard, at.Name, then)
		}
	}
	bus.fence(ctx, t)
	if fired, mines := countFired(c, bus, leaver), countMines(c, leaver); fired+mines > 0 {
		t.Errorf("%s has fired %d events, and %d masters have its mine", leaver.id, fired, mines)
	}
	for _, id := range c.IDs() {
		if again := len(bus.signIns(id)) - signedIn[id]; again > rotations {
			t.Errorf("%s has signed in %d times", id, again)
		}
	}
}

// publish publishes test.ping, which all real minions answer.
func publish(t *testing.T, c *lab.Cluster, n *lab.Node) {
	t.Helper()
	got, err := n.Master.Pub(t.Context(), "min*", "test.ping")
	labtest.Must(t, err)
	check.NoError(t, lab.AnsweredBy(got, c.IDs()...), "test.ping from", n.Name)
}
