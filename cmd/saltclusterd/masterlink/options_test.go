package masterlink

import (
	"testing"
	"time"

	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

func TestReadOptions(t *testing.T) {
	const sha1 = saltcrypt.PKCS1v15SHA1
	const unsigned = "sign_pub_messages: False\n"
	for name, c := range map[string]struct {
		major int
		text  string
		want  Options
	}{
		"none":          {3006, "", Options{AuthEvents: true, Algorithm: sha1}},
		"no events":     {3006, "auth_events: False\n", Options{Algorithm: sha1}},
		"not just True": {3008, "auth_events: 1\n", Options{Algorithm: sha1, authStrips: true}},
		"a limit": {
			3007, "max_minions: 5\nrequest_server_ttl: 30\n",
			Options{AuthEvents: true, AskAll: true, TTL: 30 * time.Second, Algorithm: sha1},
		},
		"signed": {
			3008, "publish_signing_algorithm: PKCS1v15-SHA224\n",
			Options{AuthEvents: true, Algorithm: "PKCS1v15-SHA224", authStrips: true},
		},
		"not signed": {3008, unsigned, Options{AuthEvents: true, authStrips: true}},
		"grains": {
			3008, unsigned + "auth_events_autosign_grains: [pend, accept]\n",
			Options{AuthEvents: true, authGrains: true, authStrips: true},
		},
		"grains of other events": {
			3008, unsigned + "auth_events_autosign_grains: [pend]\n", Options{AuthEvents: true, authStrips: true},
		},
		"no AES": {
			3008, unsigned + "disable_aes_with_tls: True\nssl: {cert_reqs: CERT_REQUIRED}\n",
			Options{AuthEvents: true, authStrips: true, WithoutAES: true},
		},
		"AES for all who need no certificate": {
			3008, unsigned + "disable_aes_with_tls: True\nssl: {cert_reqs: CERT_OPTIONAL}\n", Options{AuthEvents: true, authStrips: true},
		},
		"no such option then": {
			3007, "auth_events_autosign_grains: [accept]\n", Options{AuthEvents: true, Algorithm: sha1},
		},
	} {
		got := *readOptions(configtest.Load(t, c.major, c.text))
		if got.From == nil {
			t.Errorf("%s: the configuration is not kept", name)
		}
		if got.From = nil; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A 3008 master fires a sign-in's key without the white space around it, older ones as the minion sent it
// (salt/master.py AuthFuncs).
func TestOptions_SignInEvent(t *testing.T) {
	for major, want := range map[int]string{3006: " key\r\n\x1f", 3007: " key\r\n\x1f", 3008: "key"} {
		e := readOptions(configtest.Load(t, major, "")).SignInEvent(saltwire.AuthRequest{ID: "m1", Pub: " key\r\n\x1f"})
		if e.Pub != want || e.ID != "m1" || e.Act != "accept" || !e.Result {
			t.Errorf("%d: %+v, want the key %q", major, e, want)
		}
	}
}

func TestEventGrains(t *testing.T) {
	for name, tt := range map[string]struct{ raw, want string }{
		"none":           {"", ""},
		"empty map":      {"\x80", ""},
		"text":           {"\x81\xa4uuid\xa1x", "\x81\xa4uuid\xa1x"},
		"invalid text":   {"\x81\xa4uuid\xa2\xff\xfe", "\x81\xa4uuid\xc4\x02\xff\xfe"},
		"bytes of text":  {"\x81\xa4uuid\xc4\x01x", "\x81\xa4uuid\xa1x"},
		"cut off":        {"\x81\xa4uuid", ""},
		"trailing bytes": {"\x81\xa4uuid\xa1xx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(eventGrains([]byte(tt.raw))); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
