package daemon

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltlog"
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
	informs    bool             // its log has the level info
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

// builtBy are the options of the master that saltclusterd builds itself by when it starts, and does not follow.
var builtBy = []string{
	"user", "id", "master_id", "pki_dir", "cachedir", "sock_dir", "ipc_mode", "tcp_master_pub_port", "tcp_master_pull_port",
	"interface", "publish_port", "ret_port", "transport", localmaster.FileRoots, localmaster.PillarRoots, "fileserver_backend",
	"cache", "minion_data_cache", "enforce_mine_cache", "preserve_minion_cache", "pillar_cache", "pillar.cache_driver",
	"eauth_tokens", "eauth_tokens.cache_driver", "hash_type", "master_job_cache", "ext_job_cache", "max_event_size", "publish_session",
}

// builtByOthers lists those that the master has now and had not when saltclusterd started.
func builtByOthers(then, now *localmaster.Config) (names []string) {
	for _, name := range builtBy {
		if !localmaster.SameOptions(then, now, []string{name}) {
			names = append(names, name)
		}
	}
	return names
}

// noteOthers notes them for the operator.
func (s *service) noteOthers(now *localmaster.Config) {
	names := builtByOthers(s.m.d.master, now)
	if before := s.others.Swap(&names); len(names) > 0 && (before == nil || !slices.Equal(*before, names)) {
		s.m.d.log.Warn("the salt-master has other options than when saltclusterd was started: reload it", "options", names)
	}
}

// noteFindings says what is wrong with the configuration that the master has started with, and was not with the one before.
func (s *service) noteFindings(now *localmaster.Config) {
	s.m.d.inspector.UseLatest(now)
}

// checkOptions warns while saltclusterd does not work by the options that the master has.
func (s *service) checkOptions(context.Context) health.Result {
	if why := s.unread.Load(); why != nil {
		return health.Result{
			Level:  health.Warn,
			Reason: "the salt-master's options are not followed, those of before hold: " + *why,
			Hint:   "mend that, then restart the salt-master (systemctl restart salt-master)",
		}
	}
	names := s.others.Load()
	if names == nil || len(*names) == 0 {
		return fine
	}
	hint := "systemctl reload saltclusterd"
	if slices.ContainsFunc([]string{"user", "pki_dir", "cachedir", "sock_dir", localmaster.FileRoots, localmaster.PillarRoots}, func(name string) bool {
		return slices.Contains(*names, name)
	}) {
		hint = "systemctl daemon-reload; systemctl restart saltclusterd" // the unit has to be made anew
	}
	return health.Result{
		Level:  health.Warn,
		Reason: "the salt-master has other options than when saltclusterd was started, which replicates, and finds the master, by those of then: " + strings.Join(*names, ", "),
		Hint:   hint,
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
		informs:    saltlog.Informs(master),
	}
	if master.Bool("sign_pub_messages") {
		o.algorithm = master.Text("publish_signing_algorithm")
	}
	return o
}
