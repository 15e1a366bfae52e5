package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
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
		"not quite True":         {3008, "auth_events: 1\n", masterOptions{algorithm: sha1}},
		"a limit":                {3007, "max_minions: 5\nrequest_server_ttl: 30\n", masterOptions{authEvents: true, askAll: true, ttl: 30 * time.Second, algorithm: sha1}},
		"signed":                 {3008, "publish_signing_algorithm: PKCS1v15-SHA224\n", masterOptions{authEvents: true, algorithm: "PKCS1v15-SHA224"}},
		"not signed":             {3008, "sign_pub_messages: False\n", masterOptions{authEvents: true}},
		"grains":                 {3008, "sign_pub_messages: False\nauth_events_autosign_grains: [pend, accept]\n", masterOptions{authEvents: true, authGrains: true}},
		"grains of other events": {3008, "sign_pub_messages: False\nauth_events_autosign_grains: [pend]\n", masterOptions{authEvents: true}},
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
