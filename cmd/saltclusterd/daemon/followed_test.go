package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

func loadMaster(t *testing.T, major int, text string) *localmaster.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := localmaster.LoadConfig(path, localmaster.Version{Major: major})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOptionsThatAreFollowed(t *testing.T) {
	const sha1 = saltcrypt.PKCS1v15SHA1
	for name, c := range map[string]struct {
		major int
		text  string
		want  masterOptions
	}{
		"none":                   {3006, "", masterOptions{authEvents: true, algorithm: sha1}},
		"no events":              {3006, "auth_events: False\n", masterOptions{algorithm: sha1}},
		"not quite True":         {3008, "auth_events: 1\n", masterOptions{algorithm: sha1, authStrips: true}},
		"a limit":                {3007, "max_minions: 5\nrequest_server_ttl: 30\n", masterOptions{authEvents: true, askAll: true, ttl: 30 * time.Second, algorithm: sha1}},
		"signed":                 {3008, "publish_signing_algorithm: PKCS1v15-SHA224\n", masterOptions{authEvents: true, algorithm: "PKCS1v15-SHA224", authStrips: true}},
		"not signed":             {3008, "sign_pub_messages: False\n", masterOptions{authEvents: true, authStrips: true}},
		"grains":                 {3008, "sign_pub_messages: False\nauth_events_autosign_grains: [pend, accept]\n", masterOptions{authEvents: true, authGrains: true, authStrips: true}},
		"grains of other events": {3008, "sign_pub_messages: False\nauth_events_autosign_grains: [pend]\n", masterOptions{authEvents: true, authStrips: true}},
		"no such option then":    {3007, "auth_events_autosign_grains: [accept]\n", masterOptions{authEvents: true, algorithm: sha1}},
	} {
		got := *optionsOf(loadMaster(t, c.major, c.text))
		if got.from == nil {
			t.Errorf("%s: the configuration is not kept", name)
		}
		if got.from = nil; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A 3008 master fires a sign-in's key without the white space around it, the older ones as the minion sent it (salt/master.py AuthFuncs).
func TestKeysInEventsOfSignIns(t *testing.T) {
	for major, want := range map[int]string{3006: " key\r\n\x1f", 3007: " key\r\n\x1f", 3008: "key"} {
		e := optionsOf(loadMaster(t, major, "")).signInEvent(saltwire.AuthRequest{ID: "m1", Pub: " key\r\n\x1f"})
		if e.Pub != want || e.ID != "m1" || e.Act != "accept" || !e.Result {
			t.Errorf("%d: %+v, want the key %q", major, e, want)
		}
	}
}

// What cannot be obeyed leaves everything as it was: a master with such a configuration does not start either.
func TestOptionsStayWhenTheyCannotBeFollowed(t *testing.T) {
	s := &service{m: &member{d: &Daemon{cfg: &config.Config{}, log: slog.New(slog.DiscardHandler)}}}
	if err := s.obey(loadMaster(t, 3006, "request_server_ttl: 30\n")); err != nil {
		t.Fatal(err)
	}
	bad := loadMaster(t, 3006, "master_sign_pubkey: True\npki_dir: /nonexistent\nrequest_server_ttl: 0\n")
	s.m.d.master = bad
	if err := s.obey(bad); err == nil {
		t.Fatal("no error without a key to sign with")
	}
	if s.followed.ttl() != 30*time.Second || s.followed.pubSigner() != nil {
		t.Error("something changed")
	}
	if err := s.obey(loadMaster(t, 3006, "")); err != nil || s.followed.ttl() != 0 {
		t.Errorf("%v, %v", err, s.followed.ttl())
	}
}

// While two identities answer, both follow the options of the master; whether there may be a second one is asked of the master of now.
func TestIdentitiesFollowOptions(t *testing.T) {
	t.Parallel()
	n := cluster(t, t.TempDir())[0]
	m := n.current()
	signing, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	pki := t.TempDir()
	for name, text := range map[string]string{"master_sign.pem": string(signing.PEM()), "signature": "made beforehand"} {
		if err := os.WriteFile(filepath.Join(pki, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signs := "master_sign_pubkey: True\npki_dir: " + pki + "\n"
	obey := func(text string) {
		t.Helper()
		if err := m.svc.obey(loadMaster(t, n.master.Version.Major, text)); err != nil {
			t.Fatal(err)
		}
	}
	prepare := func() error {
		_, err := n.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityPrepare}, quiet)
		return err
	}

	obey(signs + "master_use_pubkey_signature: True\nmaster_pubkey_signature: signature\n")
	if err := prepare(); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a second identity beside a signature that was made beforehand: %v", err)
	}
	obey("")
	if err := prepare(); err != nil {
		t.Fatal(err)
	}
	answers := func(signed bool) func() error {
		return func() error {
			m.ident.mu.Lock()
			defer m.ident.mu.Unlock()
			if m.ident.options == nil || m.ident.options != m.svc.followed.Load() {
				return errors.New("not by the options of now")
			}
			c := m.cons.View().IdentityChange()
			another, err := m.secondIdentity(c.FP, c.Sealed, m.ident.options)
			if err == nil && (another.PubSigner != nil) != signed {
				err = fmt.Errorf("signs its key: %v", !signed)
			}
			return err
		}
	}
	eventually(t, "the second identity", answers(false))
	obey(signs)
	eventually(t, "the second identity with a signature", answers(true))
	rotate(t, n, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityAbort})
	eventually(t, "one identity", func() error {
		m.ident.mu.Lock()
		defer m.ident.mu.Unlock()
		if m.ident.other != "" || m.ident.options != nil {
			return errors.New("there are two")
		}
		return nil
	})

	if r := n.currentService().checkOptions(t.Context()); r != fine {
		t.Errorf("%+v", r)
	}
	if err := m.svc.obey(loadMaster(t, n.master.Version.Major, "master_sign_pubkey: True\npki_dir: /nonexistent\n")); err == nil {
		t.Error("no error without a key to sign with")
	}
	if r := n.currentService().checkOptions(t.Context()); r.Level != health.Warn || !strings.Contains(r.Reason, "/nonexistent/master_sign.pem") {
		t.Errorf("%+v", r)
	}
}

// A process that takes over looks at the master's options before it has opened its doors.
func TestOptionsAreLookedAtBeforeTheDoorsOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(path, []byte("master_sign_pubkey: True\npki_dir: /nonexistent\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := New(&config.Config{ID: "a", Salt: config.Salt{Config: path}}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.master = loadMaster(t, 3006, "")
	s := &service{m: &member{d: d}}
	s.lookAgain()
	if s.unread.Load() == nil {
		t.Error("nothing is said of options that cannot be followed")
	}
}

// A master that has started with options which cannot be read here answers by them itself, until they can.
func TestOptionsThatCannotBeReadAreLeftToTheMaster(t *testing.T) {
	t.Parallel()
	n := cluster(t, t.TempDir())[0]
	s := n.current().svc
	native := func() (out []bool) {
		files, _ := s.files.Native()
		mines, _ := s.mined.Native("_mine")
		fired, _ := s.fired.Native()
		returned, _ := s.returns.Native("_return")
		return []bool{files, mines, fired, returned}
	}
	if got := native(); slices.Contains(got, false) {
		t.Fatalf("%v", got)
	}
	text, err := os.ReadFile(n.cfg.Salt.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text   string
		native bool
	}{{string(text) + "a: [\n", false}, {string(text), true}} {
		if err := os.WriteFile(n.cfg.Salt.Config, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.lookAgain()
		if got := native(); slices.Contains(got, !c.native) {
			t.Errorf("%v, want %v", got, c.native)
		}
		if f := s.filesStatus(); !c.native && !strings.Contains(f.Reason, "its options cannot be read: ") {
			t.Errorf("%+v", f)
		}
	}
}

// What must not stay in the master's configuration is said as soon as the master has started with it: with the engine stalekey, say, keys
// are gone before saltclusterd is started again.
func TestConfigurationOfARestartedMasterIsJudged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := New(&config.Config{ID: "a", Salt: config.Salt{Config: path}, Cluster: config.Cluster{IsolatedFilesystem: true}}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	unfollowed := "interface: 127.0.0.1\nmaster_sign_pubkey: True\npki_dir: /nonexistent\n" // lookAgain ends there
	write("master", unfollowed)
	if d.master, err = localmaster.LoadConfig(path, localmaster.Version{Major: 3006}); err != nil {
		t.Fatal(err)
	}
	s := &service{m: &member{d: d}}
	options := func() (out []string) {
		s.lookAgain()
		for _, f := range d.inspector.Findings() {
			out = append(out, f.Option)
		}
		return out
	}
	before := options()
	if slices.Contains(before, "engines") || slices.Contains(before, "include") {
		t.Errorf("%q", before)
	}
	write("master", unfollowed+"engines: [stalekey]\ndefault_include: '*.conf'\n")
	write("broken.conf", "a: [\n")
	if now := options(); !slices.Contains(now, "engines") || !slices.Contains(now, "include") {
		t.Errorf("%q", now)
	}
	write("clean.sls", "a:\n  key.timeout:\n    - delete: 90\n")
	write("master", unfollowed+"engines: [{thorium: {}}]\nthorium_roots: {base: ["+dir+"]}\n")
	if now := options(); !slices.Contains(now, "engines") {
		t.Errorf("%q", now)
	}
	write("master", unfollowed)
	if after := options(); !slices.Equal(after, before) {
		t.Errorf("%q, then %q", before, after)
	}
}

// What saltclusterd goes by since its start and the master does not any more is named, with what to type, until it is as before.
func TestOptionsThatAreNotFollowedAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	write := func(text string) *localmaster.Config {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := localmaster.LoadConfig(path, localmaster.Version{Major: 3007})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	d := &Daemon{cfg: &config.Config{}, log: slog.New(slog.DiscardHandler), master: write("file_roots: {base: [/a]}\nworker_threads: 5\n")}
	m := &member{d: d, svc: &service{}}
	m.svc.m = m
	d.member = m
	for _, c := range []struct{ text, names, hint string }{
		{"file_roots: {base: [/a]}\nworker_threads: 7\nreactor: []\n", "", ""},
		{"file_roots: {base: [/a, /b]}\n", "file_roots", "daemon-reload"},
		{"file_roots: {base: [/a]}\nhash_type: sha512\nminion_data_cache: False\n", "minion_data_cache, hash_type", "systemctl reload saltclusterd"},
		{"file_roots: {base: [/a]}\n", "", ""},
	} {
		m.svc.noteOthers(write(c.text))
		r := d.currentService().checkOptions(t.Context())
		if c.names == "" && r != fine || c.names != "" && (r.Level != health.Warn || !strings.HasSuffix(r.Reason, ": "+c.names) || !strings.Contains(r.Hint, c.hint)) {
			t.Errorf("%q: %+v", c.text, r)
		}
	}
}

func TestMasterKeyFile(t *testing.T) {
	master := loadMaster(t, 3006, "pki_dir: "+t.TempDir()+"\n")
	d := &Daemon{cfg: &config.Config{}, master: master}
	path := filepath.Join(master.PkiDir, "k")
	if _, err := d.masterKeyFile(master, "k"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for size, ok := range map[int]bool{0: true, maxKeyFile: true, maxKeyFile + 1: false} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := d.masterKeyFile(master, "k"); (err == nil) != ok || ok && len(text) != size {
			t.Errorf("%d bytes: %d, %v", size, len(text), err)
		}
	}
}

// What was signed beforehand is named after the master since 3008 (salt/crypt.py:MasterKeys).
func TestSignatureMadeBeforehand(t *testing.T) {
	for name, c := range map[string]struct {
		major      int
		file, text string
		options    string
		want       string
	}{
		"3006":    {3006, "master_pubkey_signature", " c2ln\r\nbmVk\n", "", "c2ln\nbmVk"},
		"3008":    {3008, "m1_pubkey_signature", "c2ln\n", "", "c2ln"},
		"named":   {3008, "signature", "c2ln\n", "master_pubkey_signature: signature\n", "c2ln"},
		"empty":   {3007, "master_pubkey_signature", " \n", "", ""},
		"missing": {3007, "another", "c2ln", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pki := t.TempDir()
			if err := os.WriteFile(filepath.Join(pki, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			master := loadMaster(t, c.major, "id: m1\nmaster_sign_pubkey: True\nmaster_use_pubkey_signature: True\npki_dir: "+pki+"\n"+c.options)
			signer, err := readPubSigner(&Daemon{cfg: &config.Config{}, master: master}, master, "")
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "gen-signature") {
					t.Errorf("%v, %v", signer, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := signer.PubSig(""); err != nil || got != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestEventGrains(t *testing.T) {
	for name, tt := range map[string]struct{ raw, want string }{
		"none":              {"", ""},
		"empty map":         {"\x80", ""},
		"text":              {"\x81\xa4uuid\xa1x", "\x81\xa4uuid\xa1x"},
		"text that is none": {"\x81\xa4uuid\xa2\xff\xfe", "\x81\xa4uuid\xc4\x02\xff\xfe"},
		"bytes of text":     {"\x81\xa4uuid\xc4\x01x", "\x81\xa4uuid\xa1x"},
		"cut off":           {"\x81\xa4uuid", ""},
		"something behind":  {"\x81\xa4uuid\xa1xx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(eventGrains([]byte(tt.raw))); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
