package joining

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// fakeMaster is a master with files in a directory.
type fakeMaster struct {
	dir             string
	private, public []byte // nil: never started
	stored          bool
	signs           bool
	signing         []byte
}

func (m *fakeMaster) Identity() (private, public []byte, err error) {
	if m.private == nil {
		return nil, nil, fs.ErrNotExist
	}
	return m.private, m.public, nil
}

func (m *fakeMaster) Fingerprint() (string, error) {
	if m.private == nil {
		return "", nil
	}
	return saltcrypt.Fingerprint(string(m.public)), nil
}

func (m *fakeMaster) InstallIdentity(private, public []byte) (changed bool, backup string, err error) {
	if m.private != nil {
		backup = "master.pem.bak"
	}
	m.private, m.public = private, public
	return true, backup, nil
}

func (m *fakeMaster) StoreIdentity([]byte) (bool, error) { return m.stored, nil }
func (m *fakeMaster) Signs() bool                        { return m.signs }

func (m *fakeMaster) InstallSigningKey(private []byte, replace bool) (changed bool, backup string, err error) {
	switch {
	case m.signing != nil && !replace:
		return false, "", localmaster.ErrOtherSigningKey
	case m.signing != nil:
		backup = "master_sign.pem.bak"
	}
	m.signing = private
	return true, backup, nil
}

func (m *fakeMaster) PKIDir() string               { return m.dir }
func (m *fakeMaster) KeyStore() *mmapkeys.Geometry { return nil }

// fakePorts counts what is reserved.
type fakePorts struct{ reserved int }

func (p *fakePorts) Reserve(context.Context, string, ...string) error { p.reserved++; return nil }
func (p *fakePorts) Release(string, ...string)                        { p.reserved-- }

// testJoiner is a Joiner with its fakes.
type testJoiner struct {
	*Joiner
	master *fakeMaster
	ports  *fakePorts
	joined int
	now    Progress
}

func newTestJoiner(t *testing.T) *testJoiner {
	t.Helper()
	dir := t.TempDir()
	o := &config.Config{}
	o.Cluster.ID, o.Cluster.PKIDir, o.Paths.StateDir = "lab", filepath.Join(dir, "pki"), filepath.Join(dir, "state")
	master := &fakeMaster{dir: filepath.Join(dir, "master")}
	for _, d := range []string{o.Cluster.PKIDir, o.Paths.StateDir, filepath.Join(master.dir, "minions")} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	identity, err := peer.LoadIdentity(o.Paths.StateDir, "m1")
	require.NoError(t, err)
	j := &testJoiner{master: master, ports: &fakePorts{}}
	j.Joiner = New(Config{
		Self: "m1", Options: o, Identity: func() *peer.Identity { return identity }, Master: master, Ports: j.ports,
		Operations: membership.NewOperations(),
		Advertise:  func() (netip.AddrPort, error) { return netip.MustParseAddrPort("192.0.2.1:4520"), nil },
		LocalAddrs: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.1")} },
		Joined:     func() { j.joined++ }, Progress: func() Progress { return j.now },
		Outcome:       func(context.Context) (adminapi.Outcome, error) { return adminapi.Outcome{Node: "m1"}, nil },
		RestartMaster: func(context.Context, admin.Progress) error { return nil },
		Logger:        slog.New(slog.DiscardHandler),
	})
	return j
}

// record fails the test unless there is a record, or none.
func (j *testJoiner) record(t *testing.T, want bool) *membership.Record {
	t.Helper()
	m, err := membership.ReadRecord(j.cfg.Options.Paths.StateDir)
	if err != nil || (m != nil) != want {
		t.Fatalf("record %+v, %v", m, err)
	}
	return m
}

func TestJoiner_Bootstrap(t *testing.T) {
	for _, started := range []bool{true, false} {
		j := newTestJoiner(t)
		if started {
			j.master.private, j.master.public = generateKey().PEM(), []byte(generateKey().PublicText())
		}
		if out, err := j.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, ignoreProgress); err != nil || out.Node != "m1" {
			t.Fatalf("%+v, %v", out, err)
		}
		m := j.record(t, true)
		if m.ClusterID != "lab" || m.Node != "m1" || !m.Founder || len(m.UUID) != 36 || len(m.GossipKeys) != 1 ||
			j.joined != 1 {
			t.Errorf("%+v, joined %d times", m, j.joined)
		}
		key, _, _, err := membership.ReadIdentity(j.cfg.Options.Cluster.PKIDir)
		if err != nil || key.PublicText() != string(j.master.public) {
			t.Errorf("the cluster has another identity than the master: %v", err)
		}
		_, err = j.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, ignoreProgress)
		if adminapi.CodeOf(err) != adminapi.CodeMember {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestJoiner_Bootstrap_Refused(t *testing.T) {
	for name, prepare := range map[string]func(*testJoiner){
		"witness": func(j *testJoiner) { j.cfg.Options.Cluster.Witness = true },
		"former member": func(j *testJoiner) {
			marker := strings.ReplaceAll(keydir.MarkerPattern, "*", "u")
			require.NoError(t, os.WriteFile(filepath.Join(j.master.dir, marker), nil, 0o600))
		},
	} {
		j := newTestJoiner(t)
		prepare(j)
		_, err := j.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, ignoreProgress)
		if adminapi.CodeOf(err) != adminapi.CodeRefused {
			t.Errorf("%s: %v", name, err)
		}
		j.record(t, false)
	}
	j := newTestJoiner(t)
	if !j.cfg.Operations.TryBegin() {
		t.Fatal("another operation is under way")
	}
	_, err := j.Bootstrap(t.Context(), adminapi.BootstrapRequest{Timeout: time.Millisecond}, ignoreProgress)
	if adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("beside another operation: %v", err)
	}
}

func TestJoiner_TakeReply(t *testing.T) {
	reply := replyPayload{
		Version: replyVersion, UUID: "u", Private: generateKey().PEM(), Public: []byte(generateKey().PublicText()),
		Rev: 7, Generation: 2,
		Members: []node.Entry{{
			ID: "m2", Addr: netip.MustParseAddrPort("192.0.2.2:4520"), Fingerprint: node.Fingerprint(fingerprint("b")),
		}},
		GossipKeys: [][]byte{make([]byte, membership.GossipKeySize)},
	}
	for name, witness := range map[string]bool{"master": false, "witness": true} {
		j := newTestJoiner(t)
		j.cfg.Options.Cluster.Witness = witness
		other := reply
		other.Version++
		if err := j.takeReply(other, false, ignoreProgress); err == nil || j.joined != 0 {
			t.Errorf("%s: another version: %v", name, err)
		}
		j.record(t, false)
		if err := j.takeReply(reply, false, ignoreProgress); err != nil || j.joined != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if m := j.record(t, true); m.UUID != "u" || m.Witness != witness || m.Generation != 2 || m.Founder {
			t.Errorf("%s: %+v", name, m)
		}
		path, _ := membership.IdentityPaths(j.cfg.Options.Cluster.PKIDir)
		if _, err := os.Stat(path); (err == nil) == witness || (j.master.private == nil) != witness {
			t.Errorf("%s: private key: %v", name, err)
		}
	}
}

func TestJoiner_SigningKey(t *testing.T) {
	const cluster, own = "of the cluster", "of the master"
	for _, tc := range []struct {
		name, had, sent string
		replace         bool
		want, said      string
	}{
		{"none", "", cluster, false, cluster, "is installed"},
		{"another", own, cluster, false, own, "saltclusterctl status lists these masters"},
		{"another, to be replaced", own, cluster, true, cluster, "kept as master_sign.pem.bak"},
		{"the member's master does not sign", own, "", true, own, ""},
	} {
		j := newTestJoiner(t)
		if tc.had != "" {
			j.master.signing = []byte(tc.had)
		}
		var said string
		err := j.installSigningKey([]byte(tc.sent), tc.replace, func(_, message string, _ ...int) { said = message })
		if err != nil || string(j.master.signing) != tc.want || !strings.Contains(said, tc.said) || (said == "") != (tc.said == "") {
			t.Errorf("%s: %v, %s, %q", tc.name, err, j.master.signing, said)
		}
	}
}

func TestJoiner_InstallIdentity_Message(t *testing.T) {
	for _, tc := range []struct {
		had, stored bool
		want        string
	}{
		{false, false, "as master.pem"}, {true, false, "kept as master.pem.bak"}, {true, true, "in the master's key store"},
	} {
		j := newTestJoiner(t)
		j.master.stored = tc.stored
		if tc.had {
			j.master.private = []byte("pem")
		}
		var got string
		err := j.InstallIdentity(generateKey().PEM(), []byte(generateKey().PublicText()),
			func(_, message string, _ ...int) { got = message })
		if err != nil || !strings.HasSuffix(got, tc.want) && !strings.Contains(got, tc.want+";") {
			t.Errorf("%q, %v, want %q", got, err, tc.want)
		}
	}
}

func TestJoiner_ReadLocalMinions(t *testing.T) {
	j := newTestJoiner(t)
	if l, err := j.readLocalMinions(t.Context()); err != nil || len(l.accepted) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	pub := generateKey().PublicText()
	require.NoError(t, os.WriteFile(filepath.Join(j.master.dir, "minions", "web1"), []byte(pub), 0o600))
	l, err := j.readLocalMinions(t.Context())
	if err != nil || len(l.accepted) != 1 || l.identity != "" || l.checkIdentity([]byte(pub)) != nil {
		t.Errorf("of a master without a key: %+v, %v", l, err)
	}
	j.master.private, j.master.public = generateKey().PEM(), []byte(pub)
	if l, err = j.readLocalMinions(t.Context()); err != nil || l.checkIdentity([]byte(pub)) != nil {
		t.Errorf("%+v, %v", l, err)
	}
	if err := l.checkIdentity([]byte("another")); err == nil ||
		!strings.Contains(err.Error(), "1 minion with an accepted key here trusts it") {
		t.Error(err)
	}
	l.accepted = append(l.accepted, l.accepted...)
	if err := l.checkIdentity([]byte("another")); err == nil ||
		!strings.Contains(err.Error(), "2 minions with accepted keys here trust it") {
		t.Error(err)
	}
	j.cfg.Options.Cluster.Witness = true
	if l, err := j.readLocalMinions(t.Context()); err != nil || len(l.accepted) != 0 {
		t.Errorf("of a witness: %+v, %v", l, err)
	}
}

func TestCountUnknownKeys(t *testing.T) {
	v := newLog(t).View()
	l := localMinions{accepted: []keydir.Found{{ID: "web1", Pub: "PEM"}, {ID: "web1", Pub: "another"},
		{ID: "web2", Pub: "PEM"}}}
	if unknown, all := countUnknownKeys(v, l.hashes()); unknown != 2 || all != 3 {
		t.Errorf("%d of %d", unknown, all)
	}
	if unknown, all := countUnknownKeys(v, l.hashes()[:keyHashSize+1]); all != 1 || unknown > 1 { // cut off
		t.Errorf("%d of %d", unknown, all)
	}
	if unknown, all := countUnknownKeys(v, nil); unknown != 0 || all != 0 {
		t.Errorf("%d of %d", unknown, all)
	}
	for range maxKeyHashes {
		l.accepted = append(l.accepted, l.accepted[0])
	}
	check.Equal(t, len(l.hashes()), maxKeyHashes*keyHashSize, "bytes")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestJoiner_Claim(t *testing.T) {
	refused := errors.New("refused")
	refuse := func(string) error { return refused }
	self, other := listen(t), listen(t)
	j := newTestJoiner(t)
	own := netip.MustParseAddrPort(self.Addr().String())
	j.cfg.Advertise = func() (netip.AddrPort, error) {
		return netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), own.Port()), nil
	}
	for _, tc := range []struct {
		name  string
		peers []string
		want  error
	}{
		{"no peers", nil, nil},
		{"this node and one that is down", []string{self.Addr().String(), "127.0.0.1:1"}, nil},
		{"a member", []string{self.Addr().String(), other.Addr().String()}, refused}, // 127.0.0.1 is lower than 192.0.2.1
	} {
		release, err := j.claim(t.Context(), tc.peers, refuse)
		check.ErrorIs(t, err, tc.want, tc.name)
		if err == nil {
			release()
		}
		if j.ports.reserved != 0 {
			t.Errorf("%s: %d ports remain open", tc.name, j.ports.reserved)
		}
	}
	// The node with the lowest address waits until the other one has closed its port.
	j.cfg.Advertise = func() (netip.AddrPort, error) { return netip.MustParseAddrPort("127.0.0.0:1"), nil }
	done := make(chan error, 1)
	go func() {
		_, err := j.claim(t.Context(), []string{other.Addr().String()}, refuse)
		done <- err
	}()
	c, err := other.Accept()
	require.NoError(t, err)
	_ = c.Close()
	_ = other.Close()
	if err := <-done; err != nil || j.ports.reserved != 1 {
		t.Errorf("%v, %d ports are open", err, j.ports.reserved)
	}
}

func TestJoiner_IsSelf(t *testing.T) {
	j := newTestJoiner(t)
	own := netip.MustParseAddrPort("198.51.100.1:4520")
	for at, want := range map[string]bool{
		"198.51.100.1:4520": true, "127.0.0.1:4520": true, "192.0.2.1:4520": true, "192.0.2.1:4521": false,
		"127.0.0.1:1": false, "192.0.2.2:4520": false,
	} {
		check.Equal(t, j.isSelf(netip.MustParseAddrPort(at), own), want, at)
	}
}

func TestJoiner_AwaitVoter(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		now  Progress
		want string
	}{
		{Progress{}, "opening the peer port"},
		{Progress{Running: true}, "catching up"},
		{Progress{Running: true, CaughtUp: true, HasMaster: true, WaitsFor: "roots"}, "roots"},
		{Progress{Running: true, CaughtUp: true, HasMaster: true}, "starting"},
		{Progress{Running: true, CaughtUp: true, HasMaster: true, WaitsFor: "ports", PortsHeld: true}, ""},
		{Progress{Running: true, CaughtUp: true, HasMaster: true, Serving: true}, "caught up; waiting"},
		{Progress{Running: true, CaughtUp: true, HasMaster: true, Serving: true, Voter: true}, ""},
		{Progress{Running: true, CaughtUp: true, Voter: true}, ""},
	} {
		j := newTestJoiner(t)
		j.now = tc.now
		err := j.awaitVoter(ended, ignoreProgress)
		if (err == nil) != (tc.want == "") ||
			err != nil && (adminapi.CodeOf(err) != adminapi.CodeTimeout || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v", tc.now, err)
		}
		j.cfg.Options.Salt.RestartCommand = []string{"true"}
		if err := j.awaitVoter(ended, ignoreProgress); tc.now.PortsHeld && err == nil {
			t.Error("it does not wait for the master that it restarts")
		}
	}
}

func TestJoiner_AwaitKeys(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	v := newLog(t).View()
	for _, tc := range []struct {
		now  Progress
		want string
	}{
		{Progress{}, ""},
		{Progress{HasMaster: true, View: v}, "the remaining keys follow; saltclusterctl keys list counts them"},
		{Progress{HasMaster: true, View: v, KeysAdopted: true}, "copied to the cluster: minion keys, 1 accepted"},
		{Progress{HasMaster: true, View: state.New().View(), KeysAdopted: true}, "copied to the cluster: no minion keys"},
	} {
		j := newTestJoiner(t)
		j.now = tc.now
		var got []string
		j.awaitKeys(ended, func(_, message string, _ ...int) { got = append(got, message) })
		if strings.Join(got, "|") != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestJoiner_CredentialsFor(t *testing.T) {
	j := newTestJoiner(t)
	j.cfg.Options.Cluster.Secret, j.cfg.Options.Cluster.PubFingerprint = config.NewSecret("configured"), "ab"
	for _, tc := range []struct {
		r                          adminapi.JoinRequest
		secret, token, fingerprint string
	}{
		{adminapi.JoinRequest{}, "configured", "", "ab"},
		{adminapi.JoinRequest{Secret: "other"}, "other", "", "ab"},
		{adminapi.JoinRequest{Token: "sct1.x", PubFingerprint: "cd"}, "configured", "sct1.x", "cd"},
	} {
		c := j.credentialsFor(tc.r)
		if c.secret.Reveal() != tc.secret || c.token.Reveal() != tc.token || c.fingerprint != tc.fingerprint {
			t.Errorf("%+v: %q, %q, %s", tc.r, c.secret.Reveal(), c.token.Reveal(), c.fingerprint)
		}
	}
	if _, err := (credentials{token: config.NewSecret("sct1.x")}).parseToken(); err == nil ||
		!strings.Contains(err.Error(), "the join token") {
		t.Error(err)
	}
}

func TestWithCode(t *testing.T) {
	for err, want := range map[error]adminapi.Code{
		nil: "", peer.ErrSlowDown: adminapi.CodeUnreachable, peer.ErrUnreachable: adminapi.CodeUnreachable,
		peer.ErrNotReady: adminapi.CodeUnreachable,
		errors.New("no"): adminapi.CodeRefused,
	} {
		check.Equal(t, adminapi.CodeOf(withCode(err)), want, err)
	}
}

// After a refusal there is a long pause; what fails otherwise later is tried again soon, as before the refusal.
func TestPauseAfter(t *testing.T) {
	pause := backoff.Backoff{Min: joinRetryMin, Max: joinRetryMax}
	for i, c := range []struct {
		refused bool
		want    time.Duration
	}{{false, time.Second}, {true, joinRetryMax}, {true, joinRetryMax}, {false, 2 * time.Second}} {
		check.Equal(t, pauseAfter(&pause, c.refused), c.want, "pause", i, "refused", c.refused)
	}
}
