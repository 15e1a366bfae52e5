//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// place is where sign-ins are tried: a node of the cluster, or a bare stock master of the same version, which says what
// is right.
type place struct {
	name    string
	addr    string        // of 4505 and 4506
	others  []string      // the same of the other nodes; a bare master again and again
	master  *lab.Master   // whose policy decides
	daemon  *lab.Daemon   // nil: bare
	masters []*lab.Master // all that must know the key
	from    *lab.Host     // where the minions are
	bus     *listeners    // of all these masters
	keys    map[string]*saltcrypt.MasterKey
}

// policyFiles are what the masters' sign-in options name.
func (p *place) policyFiles() lab.Settings {
	in := func(name string) string { return filepath.Join(p.master.Host().Dir(), name) }
	return lab.Settings{
		"autosign_file": in("autosign.conf"), "autoreject_file": in("autoreject.conf"),
		"autosign_grains_dir": in("autosign_grains"),
		"auth_events":         true, "auth_events_autosign_grains": []string{"accept"}, // the latter is 3008's
	}
}

// trial is one case at one place, and what is seen of it.
type trial struct {
	*place
	t       *testing.T
	minions map[string]*byteMinion
	seen    observation
}

// observation is what must be the same through the cluster as with a bare master. Ids are without the place's name.
type observation struct {
	Heard  []string          // by the minions, in order
	Files  map[string]string // id: key files and whose key is in them
	Events map[string][]string
}

// minion returns the minion of that name at this place: it is of this place alone.
func (x *trial) minion(name string) *byteMinion {
	m := x.minions[name]
	if m == nil {
		m = &byteMinion{
			host: x.from, id: name + "." + x.name, key: x.keys["A"], enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
			pin: x.masterPub(),
		}
		x.minions[name] = m
	}
	return m
}

func (x *trial) masterPub() string {
	raw, err := os.ReadFile(filepath.Join(x.master.PKIDir(), "master.pub"))
	labtest.Must(x.t, err)
	return saltcrypt.CleanKey(string(raw))
}

// signIn has the minion sign in with key A or B and records what it hears.
func (x *trial) signIn(name, key string) { x.signInAt(x.addr, name, key) }

func (x *trial) signInAt(addr, name, key string) {
	x.t.Helper()
	m := x.minion(name)
	m.key = x.keys[key]
	heard, err := m.signIn(x.t.Context(), addr)
	labtest.Must(x.t, err)
	x.seen.Heard = append(x.seen.Heard, heard)
}

// everywhere has an accepted minion sign in at the other nodes, too: it hears the same keys, and its session works
// there. That is so only because its key has been agreed on.
func (x *trial) everywhere(name, key string) {
	x.t.Helper()
	m := x.minion(name)
	if m.got == nil {
		x.t.Errorf("%s has not been accepted", m.id)
		return
	}
	first := *m.got
	m.key = x.keys[key]
	labtest.Must(x.t, m.works(x.t.Context(), x.addr))
	// that the minion was told; a key that was replaced makes the cluster rotate once, somewhere among these sign-ins: the
	// AES key changes then, and the seed of the session keys
	epochs, sessions := 1, 1
	for _, addr := range x.others {
		labtest.Must(x.t, m.works(x.t.Context(), addr))
		before := *m.got
		x.signInAt(addr, name, key)
		if m.got.aes != before.aes {
			epochs++
		}
		if m.got.session != before.session {
			sessions++
		}
		if m.got.publishPort != first.publishPort || epochs > 2 || sessions > 2 {
			x.t.Errorf("%s is told other keys by %s than by %s", m.id, addr, x.addr)
		}
	}
	check.Equal(x.t, first.publishPort, 4505, m.id, "is told to subscribe at port")
}

// salt-key on the last of the masters, which in a cluster is another one than the minion talks to.
func (x *trial) saltKey(option, name string) {
	x.t.Helper()
	at := x.master
	for _, m := range x.masters {
		if m != x.master {
			at = m
		}
	}
	res, err := at.Run(x.t.Context(), "salt-key", "-y", option, x.minion(name).id)
	labtest.Must(x.t, err)
	labtest.Must(x.t, res.Err())
}

// write puts a file of the master's host there, below its root directory.
func (x *trial) write(path, text string) {
	x.t.Helper()
	path = filepath.Join(x.master.Host().Dir(), path)
	labtest.Must(x.t, os.MkdirAll(filepath.Dir(path), 0o755))
	labtest.Must(x.t, os.WriteFile(path, []byte(text), 0o644))
}

// stub lets the next sign-in of the minion be accepted (minions_autosign/<id>).
func (x *trial) stub(name string) {
	x.t.Helper()
	labtest.Must(x.t, os.WriteFile(x.stubPath(name), nil, 0o644))
}

func (x *trial) stubPath(name string) string {
	return filepath.Join(x.master.PKIDir(), "minions_autosign", x.minion(name).id)
}

// keyFiles tells which key files of an id a master has: "minions:A minions_denied:B".
func (p *place) keyFiles(m *lab.Master, id string) string {
	var found []string
	for _, dir := range []string{"minions", "minions_pre", "minions_rejected", "minions_denied", "minions_autosign"} {
		raw, err := os.ReadFile(filepath.Join(m.PKIDir(), dir, id))
		if err != nil {
			continue
		}
		whose := "?"
		for name, key := range p.keys {
			if string(raw) == key.PublicText() {
				whose = name
			}
		}
		found = append(found, dir+":"+whose)
	}
	return strings.Join(found, " ")
}

// settle waits until all masters have the key files which the one that was asked has, and keeps what they are.
func (x *trial) settle(want map[string]string) {
	x.t.Helper()
	x.seen.Files = map[string]string{}
	for name, m := range x.minions {
		for _, master := range x.masters {
			err := lab.Eventually(x.t.Context(), 15*time.Second, "key files of "+m.id+" on "+master.Host().Name,
				func(context.Context) error {
					if got := x.keyFiles(master, m.id); got != want[name] {
						return fmt.Errorf("%q instead of %q", got, want[name])
					}
					return nil
				})
			check.NoError(x.t, err)
		}
		x.seen.Files[name] = x.keyFiles(x.master, m.id)
	}
}

// collect keeps the salt/auth events of the trial's minions, all masters taken together.
func (x *trial) collect(t *testing.T) {
	x.seen.Events = map[string][]string{}
	for name, m := range x.minions {
		for _, e := range x.bus.signIns(m.id) {
			whose := "?"
			if want := x.grainsOfEvent(e, m); e.grains != want {
				t.Errorf("%s: event %s of %s on %s with grains %q, want %q", x.name, e.act, m.id, e.on, e.grains, want)
			}
			for k, key := range x.keys {
				if e.pub == key.PublicText() {
					whose = k
				}
			}
			x.seen.Events[name] = append(x.seen.Events[name], fmt.Sprintf("%s:%s:%t", whose, e.act, e.result))
		}
		slices.Sort(x.seen.Events[name]) // buses of several masters have no common order
	}
}

// grainsOfEvent are those that an event has: where the master is of 3008, and the minion came in.
func (x *trial) grainsOfEvent(e authEvent, m *byteMinion) string {
	on := slices.IndexFunc(x.masters, func(m *lab.Master) bool { return m.Host().Name == e.on })
	if on < 0 || !strings.HasPrefix(x.masters[on].Version, "3008") || e.act != "accept" || m.more == nil {
		return ""
	}
	return fmt.Sprint(m.more, nil)
}

// policyCase is one sign-in policy of stock masters.
type policyCase struct {
	name     string
	do       func(*trial)
	heard    []string
	files    map[string]string
	noEvents bool // they differ on purpose; see the case
}

// runPolicy tries all cases at all places and compares each node with the bare master of its version.
func runPolicy(t *testing.T, cases []policyCase, bare, nodes []*place) {
	ctx := t.Context()
	for _, p := range slices.Concat(bare, nodes) {
		p.warm(t)
	}
	bare[0].bus.fence(ctx, t) // one listener hears all masters
	seen := map[string]*trial{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range slices.Concat(bare, nodes) {
				x := &trial{place: p, t: t, minions: map[string]*byteMinion{}}
				c.do(x)
				x.settle(c.files)
				check.EqualSlices(t, x.seen.Heard, c.heard, p.name, "(", p.master.Version, "): heard")
				seen[c.name+p.name] = x
			}
		})
	}
	for _, p := range nodes {
		p.flush(t)
	}
	bare[0].bus.fence(ctx, t)
	for _, c := range cases {
		for i, p := range nodes {
			stock, ours := seen[c.name+bare[i].name], seen[c.name+p.name]
			if stock == nil || ours == nil {
				continue // it has failed before
			}
			stock.collect(t)
			ours.collect(t)
			fired := 0
			for _, events := range ours.seen.Events {
				fired += len(events)
			}
			if c.noEvents {
				stock.seen.Events, ours.seen.Events = nil, nil
			} else if fired != len(ours.seen.Heard) {
				t.Errorf("%s, Salt %s: %d events for %d sign-ins", c.name, p.master.Version, fired, len(ours.seen.Heard))
			}
			if !reflect.DeepEqual(stock.seen, ours.seen) {
				t.Errorf("%s, Salt %s:\n stock %v\n ours  %v", c.name, p.master.Version, stock.seen, ours.seen)
			}
		}
	}
}

// warm returns when the workers of a master answer: its ports are open long before.
func (p *place) warm(t *testing.T) {
	t.Helper()
	x := &trial{place: p, t: t, minions: map[string]*byteMinion{}}
	labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, p.name+" to answer sign-ins",
		func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := x.minion("warm").signIn(ctx, p.addr)
			return err
		}))
}

// flush returns when the node's own events of all sign-ins before have been fired: it fires them in order.
func (p *place) flush(t *testing.T) {
	t.Helper()
	x := &trial{place: p, t: t, minions: map[string]*byteMinion{}}
	id := x.minion("signed-flush").id
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "events of "+p.name, func(context.Context) error {
		x.signIn("signed-flush", "A")
		for _, e := range p.bus.signIns(id) {
			if e.on == p.name && e.act == "accept" && len(x.seen.Heard) > 1 { // the first is the master's own
				return nil
			}
		}
		return errors.New("not heard")
	}))
}

// reconfigure restarts all places with other options of their masters.
func reconfigure(t *testing.T, places []*place, over lab.Settings) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	for _, p := range places {
		g.Go(func() error {
			if p.daemon != nil {
				if err := p.daemon.Stop(ctx); err != nil {
					return err
				}
			}
			if err := p.master.Stop(ctx); err != nil {
				return err
			}
			if err := p.master.Configure(p.policyFiles(), over); err != nil {
				return err
			}
			if err := p.master.Start(ctx); err != nil {
				return err
			}
			if p.daemon != nil {
				if err := p.daemon.Start(ctx); err != nil {
					return err
				}
				if err := p.daemon.Serving(ctx, 2*time.Minute); err != nil {
					return err
				}
			}
			return p.master.WaitReady(ctx, 3*time.Minute)
		})
	}
	labtest.Must(t, g.Wait())
}

// policyPlaces starts a cluster of all versions and a bare master of each beside it.
func policyPlaces(t *testing.T) (c *lab.Cluster, bare, nodes []*place) {
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions, DaemonSettings: metricsForAll})
	labtest.Must(t, err)
	from, err := l.Host(ctx, "min")
	labtest.Must(t, err)
	keys := map[string]*saltcrypt.MasterKey{}
	for _, name := range []string{"A", "B"} {
		keys[name], err = saltcrypt.GenerateMasterKey(2048)
		labtest.Must(t, err)
	}
	var masters, all []*lab.Master
	for i, n := range c.Nodes {
		h, err := l.Host(ctx, fmt.Sprint("bare", i+1))
		labtest.Must(t, err)
		m, err := h.NewMaster(lab.Versions[i], h.Addr)
		labtest.Must(t, err)
		bare = append(bare, &place{
			name: h.Name, addr: h.Addr, others: []string{h.Addr, h.Addr}, master: m, masters: []*lab.Master{m}, from: from,
			keys: keys,
		})
		masters, all = append(masters, n.Master), append(all, n.Master, m)
	}
	bus := listen(t, all...)
	for i, n := range c.Nodes {
		p := &place{name: n.Name, addr: n.Addr, master: n.Master, daemon: n.Daemon, masters: masters, from: from, keys: keys,
			bus: bus}
		for _, o := range c.Nodes {
			if o != n {
				p.others = append(p.others, o.Addr)
			}
		}
		bare[i].bus = bus
		nodes = append(nodes, p)
	}
	for _, p := range slices.Concat(bare, nodes) {
		labtest.Must(t, p.master.Configure(p.policyFiles()))
	}
	for _, p := range bare {
		labtest.Must(t, p.master.Start(ctx))
	}
	labtest.Must(t, c.Form(ctx))
	for _, p := range bare {
		labtest.Must(t, p.master.WaitReady(ctx, 3*time.Minute))
		labtest.Must(t, from.Accepts(ctx, net.JoinHostPort(p.addr, "4506")))
	}
	return c, bare, nodes
}
