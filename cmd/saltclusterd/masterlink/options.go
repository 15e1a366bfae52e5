package masterlink

import (
	"slices"
	"time"

	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
)

// Options are the options of the local master by which saltclusterd itself signs minions in, judges requests and signs
// publications.
type Options struct {
	From       *localmaster.Config
	AuthEvents bool             // a sign-in is an event
	AskAll     bool             // max_minions counts connected minions, which only the master does
	TTL        time.Duration    // of a request; 0: it does not age
	Algorithm  string           // by which publications are signed; empty: they are not
	Informs    bool             // the master's log has the level info
	PubSigner  signin.PubSigner // nil: master_sign_pubkey is off

	WithoutAES bool // disable_aes_with_tls, where minions must have a certificate

	authGrains bool // events of sign-ins have the grains that the minion brought to be signed by; 3008
	authStrips bool // they have the key without the white space around it; 3008 removes it from what the minion sent
	minionfs   minionFS
}

// readOptions reads the options that need no files.
func readOptions(master *localmaster.Config) *Options {
	// Salt tests for True, which a number, for example, is not (salt/channel/server.py _auth; 3008: salt/master.py).
	events, _ := master.Raw("auth_events")
	accepts := slices.Contains(master.Strings("auth_events_autosign_grains"), "accept")
	o := &Options{
		From: master, AuthEvents: events == true, AskAll: master.Int("max_minions") > 0,
		authGrains: master.Version.Major >= 3008 && accepts,
		authStrips: master.Version.Major >= 3008,
		TTL:        time.Duration(max(master.Int("request_server_ttl"), 0)) * time.Second,
		minionfs:   minionFSOf(master),
		Informs:    saltlog.Informs(master),
	}
	if ssl, _ := master.Raw("ssl"); o.From.Bool("disable_aes_with_tls") { // salt/transport/tls_util.py
		m, _ := ssl.(map[string]any)
		o.WithoutAES = m["cert_reqs"] == "CERT_REQUIRED"
	}
	if master.Bool("sign_pub_messages") {
		o.Algorithm = master.Text("publish_signing_algorithm")
	}
	return o
}

// SignInEvent returns the event that a stock master fires for a sign-in it accepts (salt/channel/server.py _auth).
func (o *Options) SignInEvent(a saltwire.AuthRequest) eventbus.AuthEvent {
	e := eventbus.AuthEvent{Result: true, Act: "accept", ID: a.ID, Pub: a.Pub}
	if o.authStrips {
		e.Pub = saltcrypt.Strip(a.Pub)
	}
	if o.authGrains {
		e.AutosignGrains = eventGrains(a.AutosignGrains)
	}
	return e
}

// eventGrains returns a minion's grains as a stock master fires them: decoded (salt/utils/data.py decode_embedded_strs)
// and packed again, because invalid text would have the bus's readers decode the whole event as bytes. It returns nil,
// which leaves them out, when there are none or they cannot be read.
func eventGrains(raw []byte) []byte {
	if !saltvalue.Truth(raw) {
		return nil
	}
	out, rest, err := saltvalue.AppendDisk(nil, raw)
	if err != nil || len(rest) > 0 {
		return nil
	}
	return out
}
