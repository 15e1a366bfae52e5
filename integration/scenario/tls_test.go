//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
)

// tlsSite is a cluster whose minions partly use TLS, and its CA.
type tlsSite struct {
	*lab.Cluster
	t   *testing.T
	ca  *tlstest.CA
	dir string // of the masters' certificate
}

// TestTLS: minions with TLS, by the masters' option ssl, are beside those with zeromq and tcp in one cluster. Those of 3007
// are not among them: its code for TLS fails on every supported Python (docs/dev/protocol.md §11).
func TestTLS(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	lb, err := l.Host(t.Context(), "lb")
	labtest.Must(t, err)
	s := &tlsSite{t: t, ca: tlstest.NewCA(t, "lab"), dir: t.TempDir()}
	s.issueServer(lb.Addr)
	pair := lab.Settings{"certfile": s.dir + "/server.crt", "keyfile": s.dir + "/server.key", "ca_certs": s.dir + "/ca.crt",
		"cert_reqs": "CERT_REQUIRED"}
	tlstest.Write(t, s.dir, "ca.crt", s.ca.PEM)
	s.Cluster, err = l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]}, Minions: []string{lab.Versions[0], lab.Versions[1]},
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15, "ssl": pair},
		MinionSettings: lab.Settings{"multiprocessing": false},
		DaemonSettings: tlsNodes,
	})
	labtest.Must(t, err)
	h, err := l.Host(t.Context(), "min")
	labtest.Must(t, err)
	for _, k := range []struct{ version, transport string }{
		{lab.Versions[0], "tcp"}, {lab.Versions[2], "tcp"}, {lab.Versions[2], "ws"},
	} {
		id := "min" + k.version[2:4] + "-" + k.transport + "-tls"
		m, err := h.NewMinion(k.version, id, lb.Addr, lab.Settings{"transport": k.transport, "multiprocessing": false})
		labtest.Must(t, err)
		s.give(m, tlstest.Wanted{Name: id})
		s.configure(m, s.ssl(m, k.transport))
		s.Minions = append(s.Minions, m)
	}
	labtest.Must(t, s.Up(t.Context()))
	for _, step := range []struct {
		name    string
		test    func(*testing.T, *tlsSite)
		instead string // what shows most of it without SALTCLUSTER_LONG=1
	}{
		{name: "answers", test: testTLSAnswers},
		{name: "the certificate is replaced", test: testTLSReplace},
		{name: "takeover", test: testTLSTakeover},
		{name: "TLS is required", test: testTLSRequired, instead: "the node that was killed requires TLS, edge.TestTLS_Required, and TestServed_AfterTakeover for the reload"},
		{name: "a node is killed", test: testTLSKill},
		{name: "a minion is moved", test: testTLSMove, instead: "TestTransports moves one without TLS"},
		{name: "certificates that are refused", test: testTLSRefused},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			if step.instead != "" && os.Getenv("SALTCLUSTER_LONG") == "" {
				t.Skip("make test-transports; " + step.instead)
			}
			s.t = t
			step.test(t, s)
		}) {
			t.Log(l.Tails(60))
		}
		labtest.Must(t, s.Whole(t.Context(), 2*time.Minute))
	}
}

// issueServer puts a new certificate and its key in place.
func (s *tlsSite) issueServer(addr string) {
	cert, key := s.ca.Issue(tlstest.Wanted{Name: "masters", IPs: []string{addr}})
	tlstest.Write(s.t, s.dir, "server.crt", cert, "server.key", key)
}

// give puts a minion's certificate beside its configuration.
func (s *tlsSite) give(m *lab.Minion, w tlstest.Wanted) { s.giveOf(s.ca, m, w) }

func (s *tlsSite) giveOf(ca *tlstest.CA, m *lab.Minion, w tlstest.Wanted) {
	cert, key := ca.Issue(w)
	tlstest.Write(s.t, m.ConfigDir, "tls.crt", cert, "tls.key", key)
}

// ssl are the lines that have a minion use TLS.
func (s *tlsSite) ssl(m *lab.Minion, transport string) string {
	return fmt.Sprintf("transport: %s\nssl: {certfile: %s/tls.crt, keyfile: %s/tls.key, ca_certs: %s/ca.crt, cert_reqs: CERT_REQUIRED}\n",
		transport, m.ConfigDir, m.ConfigDir, s.dir)
}

// configure adds lines to a minion's configuration, without those about its transport that are there. It returns what was
// there.
func (s *tlsSite) configure(m *lab.Minion, lines string) (before string) {
	path := filepath.Join(m.ConfigDir, "minion")
	raw, err := os.ReadFile(path)
	labtest.Must(s.t, err)
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "transport:") && !strings.HasPrefix(line, "ssl:") {
			b.WriteString(line)
		}
	}
	labtest.Must(s.t, os.WriteFile(path, []byte(strings.TrimRight(b.String(), "\n")+"\n"+lines), 0o644))
	return string(raw)
}

// withTLS are the minions with TLS.
func (s *tlsSite) withTLS() (all []*lab.Minion) {
	for _, m := range s.Minions {
		if strings.HasSuffix(m.ID, "-tls") {
			all = append(all, m)
		}
	}
	return all
}

func testTLSAnswers(t *testing.T, s *tlsSite) {
	for i, call := range [][]string{{"test.ping"}, {"cp.hash_file", "salt://demo/init.sls"}, {"event.send", "lab/tls"}} {
		n := s.Nodes[i%len(s.Nodes)]
		got, err := n.Master.Pub(t.Context(), "*", call[0], call[1:]...)
		labtest.Must(t, err)
		for _, m := range s.Minions {
			if got[m.ID] == nil || got[m.ID] == false {
				t.Errorf("%s answers %s with %v", m.ID, call[0], got[m.ID])
			}
		}
	}
	for _, n := range s.Nodes {
		if left := metricSum(t, n, "saltcluster_tls_certificate_expiry_seconds"); left < 3e7 {
			t.Errorf("%s: its certificate expires in %v s", n.Name, left)
		}
	}
	s.Minions = slices.DeleteFunc(s.Minions, func(m *lab.Minion) bool {
		ws := strings.HasSuffix(m.ID, "-ws-tls")
		if ws { // Salt's minion does not survive the end of its connection
			labtest.Must(t, m.Stop(t.Context()))
		}
		return ws
	})
}

// testTLSReplace replaces the certificate and key one after the other: no connection ends, and new ones get it.
func testTLSReplace(t *testing.T, s *tlsSite) {
	before := connections(t, s.Minions[0].Host())
	loaded := func() (n int) {
		for _, node := range s.Nodes {
			n += strings.Count(node.Daemon.Tail(10_000), "TLS certificate loaded")
		}
		return n
	}
	had := loaded()
	s.issueServer(s.LB.Host().Addr)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the certificate to be read", func(context.Context) error {
		if n := loaded() - had; n < len(s.Nodes) {
			return fmt.Errorf("read %d times", n)
		}
		return nil
	}))
	if after := connections(t, s.Minions[0].Host()); !slices.Equal(slices.Sorted(slices.Values(before)),
		slices.Sorted(slices.Values(after))) {
		t.Errorf("connections %v, before %v", after, before)
	}
	m := s.withTLS()[0]
	labtest.Must(t, m.Stop(t.Context()))
	labtest.Must(t, m.Start(t.Context()))
	labtest.Must(t, s.Answering(t.Context(), s.Nodes[0]))
}

// testTLSTakeover replaces both daemons, one after the other; in short only the first, as the other one is killed next.
// Connections with TLS end with the process.
func testTLSTakeover(t *testing.T, s *tlsSite) {
	nodes := s.Nodes
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		nodes = nodes[:1]
	}
	for i, n := range nodes {
		s.keepsReturns(t, func() { upgradeDaemon(t, n) })
		labtest.Must(t, s.Answering(t.Context(), s.Nodes[1-i]))
	}
}

// testTLSRequired has both nodes refuse minions without TLS, and then take them again. Both are told by a reload.
func testTLSRequired(t *testing.T, s *tlsSite) {
	require := func(is bool) {
		for _, n := range s.Nodes {
			labtest.Must(t, n.Daemon.Configure(tlsNodes, lab.Settings{"cluster_require_tls": is}))
			upgradeDaemon(t, n)
		}
	}
	require(true)
	defer require(false)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "only minions with TLS to answer", func(ctx context.Context) error {
		got, err := s.Nodes[0].Master.Pub(ctx, "*", "test.ping")
		for _, m := range s.Minions {
			if has := slices.Contains(s.withTLS(), m); err == nil && (got[m.ID] == true) != has {
				err = fmt.Errorf("%s answers %v", m.ID, got[m.ID])
			}
		}
		return err
	}))
	for _, n := range s.Nodes {
		if !n.Daemon.Logged(saysTLSRequired) {
			t.Errorf("%s does not say why it refuses minions", n.Name)
		}
	}
}

// tlsNodes is what the nodes of TestTLS are told.
var tlsNodes = metricsForAll

// saysTLSRequired is in the log of a node that refuses minions without TLS.
const saysTLSRequired = "without TLS, which cluster_require_tls refuses"

// testTLSKill kills a node. When it is back it refuses minions without TLS, until it is told otherwise.
func testTLSKill(t *testing.T, s *tlsSite) {
	ctx, n := t.Context(), s.Nodes[1]
	s.keepsReturns(t, func() { labtest.Must(t, n.Daemon.Kill()) })
	labtest.Must(t, s.Answering(ctx, s.Nodes[0]))
	labtest.Must(t, n.Daemon.Configure(tlsNodes, lab.Settings{"cluster_require_tls": true}))
	labtest.Must(t, n.Daemon.Start(ctx))
	labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
	plain := &byteMinion{host: s.Minions[0].Host()}
	letIn := func(at *lab.Node, port, socket string) error {
		c, err := plain.connect(ctx, at.Addr, port, socket)
		if err == nil {
			c.Close()
		}
		return err
	}
	for port, socket := range map[string]string{"4505": "SUB", "4506": "REQ"} {
		labtest.Must(t, letIn(s.Nodes[0], port, socket))
		if err := letIn(n, port, socket); err == nil {
			t.Errorf("%s lets in, on %s, who has no TLS", n.Name, port)
		}
	}
	eventually(t, time.Minute, n.Name+" to say why", func() bool { return n.Daemon.Logged(saysTLSRequired) })
	labtest.Must(t, n.Daemon.Configure(tlsNodes))
	upgradeDaemon(t, n)
	labtest.Must(t, letIn(n, "4505", "SUB"))
}

// keepsReturns disturbs the cluster while all minions run a job. The first node's job cache gets all returns, but those that
// a minion of 3008 says it drops: it does not send one that is ready before it has signed in again.
func (s *tlsSite) keepsReturns(t *testing.T, disturb func()) {
	t.Helper()
	dir, master := t.TempDir(), s.Nodes[0].Master
	res, err := master.Run(t.Context(), "salt", "--async", "*", "cmd.run", "touch "+dir+"/{{grains.id}}; sleep 3; echo done",
		"template=jinja")
	labtest.Must(t, err)
	jid := jidText.FindString(res.Stdout)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the job to begin", func(context.Context) error {
		began, err := os.ReadDir(dir)
		if err == nil && len(began) < len(s.Minions) {
			err = fmt.Errorf("%d of %d minions run it", len(began), len(s.Minions))
		}
		return err
	}))
	disturb()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "all returns of "+jid, func(ctx context.Context) error {
		res, err := master.Run(ctx, "salt-run", "--out=json", "jobs.lookup_jid", jid)
		n := strings.Count(res.Stdout, `"done"`)
		for _, m := range s.withTLS() {
			if !strings.Contains(res.Stdout, `"`+m.ID+`"`) && m.Logged("not connected, cannot return data for job "+jid) {
				t.Logf("%s drops its return", m.ID)
				n++
			}
		}
		if err == nil && n < len(s.Minions) {
			err = fmt.Errorf("%d of %d returns", n, len(s.Minions))
		}
		return err
	}))
}

var jidText = regexp.MustCompile(`\d{20}`)

// testTLSMove moves a minion from zeromq to tcp, to tcp with TLS, and back, while the others are asked.
func testTLSMove(t *testing.T, s *tlsSite) {
	m := s.Minions[0]
	s.give(m, tlstest.Wanted{Name: m.ID})
	for _, lines := range []string{"transport: tcp\n", s.ssl(m, "tcp"), "transport: zeromq\n"} {
		s.restart(t, m, lines, func(ctx context.Context) error { return s.pings(ctx, t, m) })
	}
}

// restart has a minion work with other lines of configuration, until done returns nil.
func (s *tlsSite) restart(t *testing.T, m *lab.Minion, lines string, done func(context.Context) error) {
	t.Helper()
	labtest.Must(t, m.Stop(t.Context()))
	s.configure(m, lines)
	labtest.Must(t, m.Start(t.Context()))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, m.ID+" with "+lines, done))
}

// pings has all others answer, and returns whether the minion does.
func (s *tlsSite) pings(ctx context.Context, t *testing.T, m *lab.Minion) error {
	others := slices.DeleteFunc(s.IDs(), func(id string) bool { return id == m.ID })
	got, err := s.Nodes[0].Master.Pub(ctx, "-L", strings.Join(others, ","), "test.ping")
	labtest.Must(t, err)
	if err := lab.AnsweredBy(got, others...); err != nil {
		t.Errorf("meanwhile: %v", err)
	}
	got, err = s.Nodes[1].Master.Pub(ctx, m.ID, "test.ping")
	if err == nil && got[m.ID] != true {
		err = fmt.Errorf("answered %v", got)
	}
	return err
}

// testTLSRefused gives a minion certificates with which it is not let in, for a reason in the log, and at last one with
// which it is. Salt's minion is restarted with each: one that is refused does not always try again.
func testTLSRefused(t *testing.T, s *tlsSite) {
	m, now := s.withTLS()[1], time.Now()
	for _, c := range []struct {
		reason string
		ca     *tlstest.CA
		w      tlstest.Wanted
	}{
		{"certificate has expired", s.ca, tlstest.Wanted{Name: m.ID, From: now.Add(-2 * time.Hour), To: now.Add(-time.Hour)}},
		{"unknown authority", tlstest.NewCA(t, "another"), tlstest.Wanted{Name: m.ID}},
	} {
		s.giveOf(c.ca, m, c.w)
		labtest.Must(t, m.Stop(t.Context()))
		labtest.Must(t, m.Start(t.Context()))
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the reason "+c.reason, func(context.Context) error {
			if !slices.ContainsFunc(s.Nodes, func(n *lab.Node) bool { return n.Daemon.Logged(c.reason) }) {
				return fmt.Errorf("the log of no node has it")
			}
			return nil
		}))
	}
	labtest.Must(t, m.Stop(t.Context()))
	s.give(m, tlstest.Wanted{Name: m.ID})
	labtest.Must(t, m.Start(t.Context()))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, m.ID+" to answer",
		func(ctx context.Context) error { return s.pings(ctx, t, m) }))
}
