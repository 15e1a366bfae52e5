//go:build integration

package scenario

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/archive"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// A token takes in the one node it is for, once, and nobody when it was revoked. The witness w1 was removed before.
func testToken(t *testing.T, m *membersLab) {
	ctx, m1, m2, w1 := t.Context(), m.Nodes[0], m.Nodes[1], m.witness[0]
	file := filepath.Join(w1.Host().Dir(), "join.token")
	must(t, m1.Daemon, "token", "create", "--file", file, "--node", "w1", "--valid", "10m")
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", st, err)
	}
	labtest.Must(t, w1.Start(ctx))
	labtest.Must(t, w1.WaitReady(ctx, time.Minute))
	// it has to hear of its removal first
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "w1 to join", func(ctx context.Context) error {
		// not the node on which the token was made
		res, err := w1.Ctl(ctx, "join", m2.Addr, "--token-file", file, "--wait=false")
		return errors.Join(err, res.Err())
	}))
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w1 witness alive", "w2 witness alive")
	var list adminapi.Tokens
	labtest.Must(t, m2.Daemon.CtlJSON(ctx, &list, "token", "list"))
	if len(list.Tokens) != 1 || list.Tokens[0].UsedBy != "w1" {
		t.Errorf("tokens: %+v", list.Tokens)
	}
	must(t, m1.Daemon, "remove", "--yes", "w1")
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness alive")
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the same token to be refused", func(ctx context.Context) error {
		res, err := w1.Ctl(ctx, "join", m1.Addr, "--token-file", file, "--wait=false")
		if err == nil && !strings.Contains(res.Stderr, "was used by w1") { // it may not have heard of its removal yet
			err = fmt.Errorf("%d: %s", res.Code, res.Output())
		}
		return err
	}))
	revokedToken(t, m1, m2, w1)
	labtest.Must(t, w1.Stop(ctx))
}

// revokedToken: a token that was made on one node and revoked on another one is refused by both.
func revokedToken(t *testing.T, made, revoked *lab.Node, joins *lab.Daemon) {
	t.Helper()
	file := filepath.Join(joins.Host().Dir(), "revoked.token")
	must(t, made.Daemon, "token", "create", "--file", file, "--valid", "10m")
	text, err := os.ReadFile(file)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, revoked.Name+" to know the token",
		func(ctx context.Context) error {
			var list adminapi.Tokens
			err := revoked.Daemon.CtlJSON(ctx, &list, "token", "list")
			for _, token := range list.Tokens {
				if strings.Contains(string(text), token.ID) {
					must(t, revoked.Daemon, "token", "revoke", token.ID)
					return nil
				}
			}
			return errors.Join(err, errors.New("it does not"))
		}))
	for _, n := range []*lab.Node{made, revoked} {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the revoked token to be refused by "+n.Name,
			func(ctx context.Context) error {
				res, err := joins.Ctl(ctx, "join", n.Addr, "--token-file", file, "--wait=false")
				if err == nil && res.Code == 0 {
					t.Fatal("a revoked token takes in a node")
				}
				if err == nil && !strings.Contains(res.Stderr, "was revoked") { // who was refused before has to wait
					err = errors.New(res.Output())
				}
				return err
			}))
	}
}

// stolen is a copy of a node's key and certificate.
func stolen(t *testing.T, d *lab.Daemon) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(d.StateDir, peer.CertFile), filepath.Join(d.StateDir, peer.KeyFile))
	labtest.Must(t, err)
	return pair
}

// admitted says whether a node lets a certificate speak raft.
func admitted(t *testing.T, from *lab.Host, to *lab.Node, cert tls.Certificate) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	raw, err := from.Dial(ctx, "tcp", to.Addr+":4520")
	labtest.Must(t, err)
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	c := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, Certificates: []tls.Certificate{cert},
		NextProtos: []string{peer.ProtoRaft},
	})
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1)) // with TLS 1.3 the refusal comes after the handshake
	return err
}

// Every secret is replaced while minions work and one node is down. Afterwards what was stolen before opens nothing,
// and the node finds back by itself.
func testRotate(t *testing.T, m *membersLab) {
	ctx, m1, m2, w2 := t.Context(), m.Nodes[0], m.Nodes[1], m.witness[1]
	loot, second := stolen(t, m1.Daemon), stolen(t, m2.Daemon)
	labtest.Must(t, admitted(t, w2.Host(), m2, loot))
	must(t, m1.Daemon, "transfer", "m1")
	labtest.Must(t, w2.Kill())
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness failed")
	ping := pinging(ctx, m1, m.IDs())
	for _, what := range []string{"gossip-key", "aes", "certificates"} {
		if res := must(t, m1.Daemon, "rotate", what, "--dry-run"); !strings.Contains(res.Stdout, "nothing was changed") ||
			!strings.Contains(res.Stdout, "w2 is down") {
			t.Errorf("dry run: %s", res.Output())
		}
		res := must(t, m1.Daemon, "rotate", what, "--yes")
		t.Log(res.Output())
		if !strings.Contains(res.Stdout, "w2 is down") {
			t.Errorf("who is down is not said: %s", res.Stdout)
		}
	}
	rounds, failures := ping()
	t.Logf("%d rounds of test.ping meanwhile, failures: %v", rounds, failures)
	if len(failures) > 0 {
		t.Errorf("%d rounds were not complete", len(failures))
	}
	m.serves(t, m1)
	if err := admitted(t, w2.Host(), m2, loot); err == nil {
		t.Error("the old certificate of m1 is let in")
	}
	labtest.Must(t, admitted(t, w2.Host(), m2, stolen(t, m1.Daemon)))
	if bytes.Equal(second.Certificate[0], stolen(t, m2.Daemon).Certificate[0]) {
		t.Error("m2 still has its old certificate")
	}
	labtest.Must(t, w2.Start(ctx))
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness alive")

	file := filepath.Join(m1.Dir(), "new.secret")
	must(t, m1.Daemon, "rotate", "secret", "--yes", "--secret-file", file)
	must(t, m1.Daemon, "rotate", "secret", "--yes", "--finish")
	must(t, m1.Daemon, "remove", "--yes", "w2")
	removed := func(ctx context.Context) error {
		res, err := w2.Ctl(ctx, "join", m1.Addr, "--wait=false") // with the secret that is configured
		switch {
		case err != nil:
			return err
		case res.Code == 0:
			t.Error("the old secret is accepted")
		case !strings.Contains(res.Stderr, "cluster_secret does not match"):
			return errors.New(res.Stderr)
		}
		return nil
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the old secret to be refused", removed))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the new secret to be accepted", func(ctx context.Context) error {
		res, err := w2.Ctl(ctx, "join", m1.Addr, "--secret-file", file, "--wait=false") // the wrong one made the address wait
		return errors.Join(err, res.Err())
	}))
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "w2 witness alive")
	// as the others are configured
	must(t, m1.Daemon, "rotate", "secret", "--yes", "--now", "--secret-file", labSecret(t, m1.Dir()))
}

// labSecret writes the lab's own secret to a file.
func labSecret(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "lab.secret")
	labtest.Must(t, os.WriteFile(path, []byte(lab.Secret+"\n"), 0o600))
	return path
}

// Nothing that the daemons and tools say or leave behind holds a secret, but the files that are to hold it, which
// nobody else reads.
func testSecretsDoNotShow(t *testing.T, m *membersLab) {
	m1 := m.Nodes[0]
	secrets := clusterSecrets(t, m)
	t.Logf("looking for %d secrets", len(secrets))
	said := map[string][]byte{}
	for _, args := range [][]string{
		{"status"}, {"status", "--out", "json"}, {"config"}, {"members", "--out", "json"}, {"token", "list", "--out", "json"},
		{"ring_info"}, {"verify"},
		// it is a member
		{"rotate", "identity"}, {"config", "check"},
		{"join", m.Nodes[1].Addr, "--secret-file", labSecret(t, m1.Dir()), "--wait=false"},
	} {
		res := ctl(t, m1.Daemon, args...)
		said[strings.Join(args, " ")] = []byte(res.Output())
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		res, err := m1.Host.Exec(t.Context(), nil, "curl", "-s", "http://"+m1.Addr+":4580"+path)
		labtest.Must(t, err)
		said[path] = []byte(res.Output())
	}
	bundled(t, m1, said)
	for _, p := range m.Lab.Processes() {
		for _, what := range []string{"cmdline", "environ"} {
			if raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), what)); err == nil {
				said[what+" of "+p.String()] = raw
			}
		}
		if raw, err := os.ReadFile(p.LogPath()); err == nil {
			said["log of "+p.String()] = raw
		}
	}
	for where, text := range said {
		for name, secret := range secrets {
			if shows(text, secret) {
				t.Errorf("%s shows %s", where, name)
			}
		}
	}
	for _, d := range []*lab.Daemon{m1.Daemon, m.Nodes[1].Daemon, m.witness[1]} {
		secretFiles(t, d, secrets)
	}
}

// bundled adds what a support bundle holds.
func bundled(t *testing.T, n *lab.Node, said map[string][]byte) {
	t.Helper()
	path := filepath.Join(n.Dir(), "bundle.tar.gz")
	must(t, n.Daemon, "bundle", path)
	f, err := os.Open(path)
	labtest.Must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	labtest.Must(t, err)
	files := 0
	for r := tar.NewReader(z); ; files++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		labtest.Must(t, err)
		raw, err := io.ReadAll(r)
		labtest.Must(t, err)
		said["bundle: "+h.Name] = raw
	}
	if files < 3 {
		t.Errorf("the bundle holds %d files", files)
	}
}

// clusterSecrets is everything that must not show, by name.
func clusterSecrets(t *testing.T, m *membersLab) map[string][]byte {
	t.Helper()
	m1 := m.Nodes[0]
	file := filepath.Join(m1.Dir(), "secrets.snapshot")
	must(t, m1.Daemon, "snapshot", "save", file)
	f, err := os.Open(file)
	labtest.Must(t, err)
	defer f.Close()
	_, content, err := archive.Read(f)
	labtest.Must(t, err)
	labtest.Must(t, os.Remove(file))
	out := map[string][]byte{"cluster_secret": []byte(lab.Secret), "cluster.pem": pemLine(t, content.Private)}
	for n, line := range bytes.Split(content.State, []byte("\n")) {
		var rec struct {
			T string
			D struct {
				Seed []byte
				Key  json.RawMessage
			}
		}
		if json.Unmarshal(line, &rec) != nil {
			continue
		}
		switch rec.T {
		case "seed":
			out["session seed"] = rec.D.Seed
		case "epoch":
			var text string
			labtest.Must(t, json.Unmarshal(rec.D.Key, &text))
			out[fmt.Sprint("AES key ", n)] = []byte(text)
		case "gossip", "join.secret":
			var raw []byte
			if len(rec.D.Key) > 0 {
				labtest.Must(t, json.Unmarshal(rec.D.Key, &raw))
				out[fmt.Sprint(rec.T, " ", n)] = raw
			}
		}
	}
	for _, d := range []*lab.Daemon{m1.Daemon, m.Nodes[1].Daemon, m.witness[1]} {
		text, err := os.ReadFile(filepath.Join(d.StateDir, peer.KeyFile))
		labtest.Must(t, err)
		out["node.key of "+d.Host().Name] = pemLine(t, text)
	}
	found := 0
	for _, n := range m.Nodes {
		sessions, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "sessions", "*"))
		labtest.Must(t, err)
		for _, path := range sessions {
			text, err := os.ReadFile(path)
			labtest.Must(t, err)
			if text = bytes.TrimSpace(text); len(text) > 0 {
				out["session "+path] = text
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no session of a minion was found: does this test still look for them?")
	}
	token, err := os.ReadFile(filepath.Join(m.witness[0].Host().Dir(), "join.token"))
	labtest.Must(t, err)
	out["join token"] = []byte(strings.Split(string(token), ".")[2])
	if len(out) < 9 {
		t.Fatalf("only %d secrets were found: %v", len(out), len(out))
	}
	return out
}

// pemLine is a line of a key that no other has.
func pemLine(t *testing.T, text []byte) []byte {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) < 4 {
		t.Fatalf("a key of %d lines", len(lines))
	}
	return bytes.TrimSpace(lines[2])
}

// shows looks for a secret as it is, and as programs write bytes down.
func shows(text, secret []byte) bool {
	for _, form := range [][]byte{
		secret, fmt.Appendf(nil, "%x", secret), fmt.Appendf(nil, "%X", secret), fmt.Appendf(nil, "%v", secret),
		bytes.Trim(fmt.Appendf(nil, "%q", secret), `"`),
		[]byte(base64.StdEncoding.EncodeToString(secret)), []byte(base64.RawURLEncoding.EncodeToString(secret)),
	} {
		if bytes.Contains(text, form) {
			return true
		}
	}
	return false
}

// secretFiles checks that only our own user can read what a node keeps.
func secretFiles(t *testing.T, d *lab.Daemon, secrets map[string][]byte) {
	t.Helper()
	holds := 0
	err := filepath.WalkDir(d.StateDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it may be gone by now
		}
		st, err := e.Info()
		if err != nil {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		for name, secret := range secrets {
			if !shows(text, secret) {
				continue
			}
			holds++
			if st.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s holds %s and has mode %04o", path, name, st.Mode().Perm())
			}
		}
		return nil
	})
	labtest.Must(t, err)
	if holds == 0 {
		t.Errorf("%s: no file holds any secret: does this test still look for them?", d.Host().Name)
	}
}
