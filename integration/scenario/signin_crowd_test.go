//go:build integration

package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// crowded is one kind of sign-in, as it comes among many others.
type crowded struct {
	name   string
	known  bool   // its key is accepted
	key    string // it offers; empty: A
	modern bool   // its algorithms are with SHA224
	token  func(t *testing.T, m *byteMinion) []byte
}

// sealedBy is a token as a minion makes it that has pinned that key.
func sealedBy(t *testing.T, pub *saltcrypt.PublicKey, algo string) []byte {
	sealed, err := pub.EncryptOAEP(algo, []byte("a minion's token"))
	labtest.Must(t, err)
	return sealed
}

func pinnedToken(t *testing.T, m *byteMinion) []byte {
	pub, err := saltcrypt.ParsePublicKey(m.pin)
	labtest.Must(t, err)
	return sealedBy(t, pub, m.enc)
}

func randomToken(size int, first byte) func(*testing.T, *byteMinion) []byte {
	return func(*testing.T, *byteMinion) []byte {
		b := make([]byte, size)
		_, _ = rand.Read(b)
		b[0] = first
		return b
	}
}

var crowdKinds = []crowded{
	{name: "ordinary", known: true, token: pinnedToken},
	{name: "modern", known: true, modern: true, token: pinnedToken},
	{name: "first", known: true, token: nil},
	{name: "ones", known: true, token: func(*testing.T, *byteMinion) []byte { return bytes.Repeat([]byte{0xff}, 256) }},
	{name: "noughts", known: true, token: func(*testing.T, *byteMinion) []byte { return make([]byte, 256) }},
	{name: "random", known: true, modern: true, token: randomToken(256, 0)},
	{name: "short", known: true, token: randomToken(100, 1)},
	{name: "long", known: true, token: randomToken(257, 1)},
	{name: "foreign", known: true, token: func(t *testing.T,
		m *byteMinion) []byte {
		return sealedBy(t, m.key.Public(), m.enc)
	}},
	{name: "cloned", known: true, key: "B", token: pinnedToken},
	{name: "cloned-ones", known: true, key: "B",
		token: func(*testing.T, *byteMinion) []byte { return bytes.Repeat([]byte{0xff}, 256) }},
	{name: "stranger", token: pinnedToken},
	{name: "stranger-ones", token: func(*testing.T, *byteMinion) []byte { return bytes.Repeat([]byte{0xff}, 256) }},
}

// comes signs in and tells what the minion hears: the outcome, and whether its token came back.
func (k crowded) comes(ctx context.Context, t *testing.T, p *place, m *byteMinion) (string, error) {
	key, algo, sig := p.keys["A"], saltcrypt.OAEPSHA1, saltcrypt.PKCS1v15SHA1
	if k.key != "" {
		key = p.keys[k.key]
	}
	if k.modern {
		algo, sig = saltcrypt.OAEPSHA224, saltcrypt.PKCS1v15SHA224
	}
	who := &byteMinion{host: m.host, id: m.id, key: key, enc: algo, sig: sig, pin: m.pin}
	req := saltwire.AuthRequest{ID: who.id, Nonce: who.nonce(), Pub: key.PublicText(), EncAlgo: algo, SigAlgo: sig}
	if k.token != nil {
		req.Token = k.token(t, who)
	}
	body, err := who.exchange(ctx, p.addr, saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, req), Version: 3, HasVersion: true,
	}))
	if err != nil {
		return "", err
	}
	reply, err := saltwire.ParseAuthReply(body)
	if err != nil {
		return "", err
	}
	if reply.Sig == nil {
		return "unsigned " + reply.Text, nil
	}
	token := reply.Token
	reply.Token = nil
	req.Token = nil // whether it must come back is what is asked here
	if err := who.believe(reply, req, saltcrypt.Key{}); err != nil {
		return "", err
	}
	if token == nil {
		return reply.Outcome.String(), nil
	}
	echo, err := key.DecryptOAEP(algo, token)
	if err != nil {
		return "", fmt.Errorf("the token that came back: %w", err)
	}
	return reply.Outcome.String() + ", " + string(echo), nil
}

// Hundreds sign in at once, known, cloned and strange, with tokens and with garbage: each hears what one alone hears
// from a bare master of the version, its own token comes back, and minions that start again among them are served.
func TestSignInCrowd(t *testing.T) {
	t.Parallel()
	const each = 20
	ctx := t.Context()
	c, bare, nodes := policyPlaces(t)
	for _, p := range slices.Concat(bare, nodes) {
		(&trial{place: p, t: t}).write("autosign.conf", "known-*\nreal-*\n")
		p.warm(t)
	}
	minion := func(p *place, k crowded, i int) *byteMinion {
		id := fmt.Sprintf("%s-%d.%s", k.name, i, p.name)
		if k.known {
			id = "known-" + id
		}
		m := &byteMinion{host: p.from, id: id, key: p.keys["A"], enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1}
		m.pin = (&trial{place: p, t: t}).masterPub()
		return m
	}
	enter := func(p *place, k crowded, i int) *byteMinion {
		m := minion(p, k, i)
		if k.known {
			// Again as a stock minion: masters have just started, and their first answer may take longer than a minion waits.
			labtest.Must(t, lab.Eventually(ctx, time.Minute, m.id+" to be accepted by "+p.name, func(ctx context.Context) error {
				heard, err := m.signIn(ctx, p.addr)
				if err == nil && heard != "accepted" {
					err = fmt.Errorf("%s", heard)
				}
				return err
			}))
		}
		return m
	}

	want := map[string]string{}
	for _, p := range bare {
		for _, k := range crowdKinds {
			heard, err := k.comes(ctx, t, p, enter(p, k, 0))
			labtest.Must(t, err)
			want[p.master.Version+k.name] = heard
			t.Logf("%s, %s: %q", p.master.Version, k.name, heard)
		}
	}

	var real []*lab.Minion
	for i, p := range nodes {
		m, err := p.from.NewMinion(p.master.Version, fmt.Sprint("real-", i), p.addr)
		labtest.Must(t, err)
		labtest.Must(t, m.Start(ctx))
		real = append(real, m)
	}
	type one struct {
		p *place
		k crowded
		m *byteMinion
	}
	var crowd []one
	for i := range each {
		for _, k := range crowdKinds {
			for _, p := range nodes {
				crowd = append(crowd, one{p, k, enter(p, k, i)})
			}
		}
	}
	for round := range 3 {
		began := time.Now()
		var wg sync.WaitGroup
		for i, o := range crowd {
			wg.Go(func() {
				heard, err := o.k.comes(ctx, t, o.p, o.m)
				if w := want[o.p.master.Version+o.k.name]; err != nil || heard != w {
					t.Errorf("round %d, %s at %s (%s): heard %q, %v; want %q", round, o.m.id, o.p.name, o.p.master.Version, heard, err,
						w)
				}
			})
			if i%7 == 0 { // others hang up when they have asked
				wg.Go(func() {
					gone, cancel := context.WithTimeout(ctx, time.Millisecond*time.Duration(i%5))
					defer cancel()
					_, _ = o.k.comes(gone, t, o.p, minion(o.p, crowdKinds[0], i%each))
				})
			}
		}
		if round == 1 {
			for _, m := range real {
				wg.Go(func() {
					check.NoError(t, m.Restart(ctx), m.ID)
				})
			}
		}
		wg.Wait()
		t.Logf("round %d: %d sign-ins in %s", round, len(crowd), time.Since(began).Round(time.Millisecond))
	}
	for _, n := range c.Nodes {
		if faults := metricSum(t, n, "saltcluster_node_rsa_faults_total"); faults > 0 {
			t.Errorf("%s: %g private operations were wrong", n.Name, faults)
		}
		metric(t, n, func(line string) bool {
			told := strings.HasPrefix(line, "saltcluster_signin_requests_total") || strings.HasPrefix(line, "saltcluster_signin_capacity_per_second")
			if told {
				t.Log(n.Name, line)
			}
			return told
		})
	}
	for _, m := range real {
		labtest.Must(t, lab.Eventually(ctx, 3*time.Minute, m.ID+" to answer", func(ctx context.Context) error {
			got, err := c.Nodes[0].Master.Pub(ctx, m.ID, "test.ping")
			if err != nil {
				return err
			}
			return m.CheckPing(got[m.ID])
		}))
	}
}
