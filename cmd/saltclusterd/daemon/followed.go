package daemon

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/signin"
)

// followed are the options of the local master by which saltclusterd itself signs minions in, judges requests and signs
// publications. A master reads them when it starts. saltclusterd reads them whenever the master is back, for it may have been restarted:
// also when it only stood still, and then they may be newer than those of the master's start.
type followed struct{ atomic.Pointer[masterOptions] }

type masterOptions struct {
	from       *localmaster.Config
	authEvents bool             // a sign-in is an event
	authGrains bool             // with the grains that the minion brought to be signed by; 3008
	authStrips bool             // with the key without the white space around it; 3008 takes it away from what the minion sent
	askAll     bool             // max_minions counts what is connected, which only the master does
	ttl        time.Duration    // of a request; 0: it does not age
	algorithm  string           // by which publications are signed; empty: they are not
	minionfs   minionFS         // what minions push is served
	pubSigner  signin.PubSigner // nil: master_sign_pubkey is off
}

func (f *followed) askAll() bool                { return f.Load().askAll }
func (f *followed) ttl() time.Duration          { return f.Load().ttl }
func (f *followed) algorithm() string           { return f.Load().algorithm }
func (f *followed) pubSigner() signin.PubSigner { return f.Load().pubSigner }

// followedMaster is the local master's configuration as the master reads it: the one of saltclusterd's own start, as long as nothing else was read.
func (m *member) followedMaster() *localmaster.Config {
	if m.svc != nil {
		if now := m.svc.followed.Load(); now != nil {
			return now.from
		}
	}
	return m.d.master
}

// obey takes over what a configuration of the master says; with an error everything stays as it was, and health says so.
func (s *service) obey(master *localmaster.Config) error {
	signer, err := readPubSigner(s.m.d, master, s.m.public)
	if err != nil {
		return s.disobey(err)
	}
	s.unread.Store(nil)
	now := optionsOf(master)
	now.pubSigner = signer
	s.followed.Store(now)
	return nil
}

// disobey notes why the options of the master are not followed, and returns the reason.
func (s *service) disobey(why error) error {
	text := why.Error()
	s.unread.Store(&text)
	return why
}

// checkOptions warns while saltclusterd does not work by the options that the master has.
func (d *Daemon) checkOptions(context.Context) health.Result {
	m := d.current()
	if m == nil || m.svc == nil {
		return fine
	}
	why := m.svc.unread.Load()
	if why == nil {
		return fine
	}
	return health.Result{
		Level:  health.Warn,
		Reason: "the salt-master's options are not followed, those of before hold: " + *why,
		Hint:   "mend that, then restart the salt-master (systemctl restart salt-master)",
	}
}

// optionsOf reads the options that need no files.
func optionsOf(master *localmaster.Config) *masterOptions {
	// Salt asks whether it is True, which a number, say, is not (salt/channel/server.py _auth; 3008: salt/master.py).
	events, _ := master.Raw("auth_events")
	o := &masterOptions{
		from: master, authEvents: events == true, askAll: master.Int("max_minions") > 0,
		authGrains: master.Version.Major >= 3008 && slices.Contains(master.Strings("auth_events_autosign_grains"), "accept"),
		authStrips: master.Version.Major >= 3008,
		ttl:        time.Duration(max(master.Int("request_server_ttl"), 0)) * time.Second,
		minionfs:   minionFSOf(master),
	}
	if master.Bool("sign_pub_messages") {
		o.algorithm = master.Text("publish_signing_algorithm")
	}
	return o
}
