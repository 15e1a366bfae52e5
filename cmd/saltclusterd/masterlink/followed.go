package masterlink

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/signin"
)

// FollowedConfig is what FollowedOptions needs.
type FollowedConfig struct {
	Master *localmaster.Config // as saltclusterd started with it
	Path   string              // of its configuration
	Public string              // clean text of the key that sign-ins are answered with

	// ReadKey reads one of the master's own keys where a master of a configuration reads it.
	ReadKey func(of *localmaster.Config, name string) ([]byte, error)
	Latest  func(*localmaster.Config) // the master has started with this configuration
	Changed func()                    // Check has another result
	Logger  *slog.Logger
}

// FollowedOptions are the options of the local master that saltclusterd follows. A master reads them when it starts;
// saltclusterd reads them whenever the master is back, because it may have been restarted. It may only have stood
// still; then they may be newer than those of the master's start.
type FollowedOptions struct {
	c        FollowedConfig
	current  atomic.Pointer[Options]
	unread   atomic.Pointer[string]   // why the options are not followed
	outdated atomic.Pointer[[]string] // names of options that are not followed and differ from the start
}

// NewFollowedOptions returns FollowedOptions without Options; Use sets them.
func NewFollowedOptions(c FollowedConfig) *FollowedOptions { return &FollowedOptions{c: c} }

// Load returns the options in force; nil before the first Use.
func (f *FollowedOptions) Load() *Options { return f.current.Load() }

// AskAll returns the option of that name.
func (f *FollowedOptions) AskAll() bool { return f.Load().AskAll }

// TTL returns how long a request is valid; 0: it does not age.
func (f *FollowedOptions) TTL() time.Duration { return f.Load().TTL }

// Algorithm returns how publications are signed; empty: they are not.
func (f *FollowedOptions) Algorithm() string { return f.Load().Algorithm }

// WithoutAES reports whether loads may come unencrypted inside of TLS.
func (f *FollowedOptions) WithoutAES() bool { return f.Load().WithoutAES }

// PubSigner returns what signs the public key for minions; nil: nothing does.
func (f *FollowedOptions) PubSigner() signin.PubSigner { return f.Load().PubSigner }

// Use puts the options of a configuration in force. After an error those of before stay in force, which Check reports.
func (f *FollowedOptions) Use(master *localmaster.Config) error {
	signer, err := ReadPubSigner(f.c.ReadKey, master, f.c.Public)
	if err != nil {
		return f.keep(err)
	}
	f.unread.Store(nil)
	now := readOptions(master)
	now.PubSigner = signer
	f.current.Store(now)
	return nil
}

// keep notes why the options in force stay, and returns that.
func (f *FollowedOptions) keep(why error) error {
	text := why.Error()
	f.unread.Store(&text)
	return why
}

// Reread puts the master's configuration in force, which the master reads when it starts. After an error the options of
// before stay in force; now is nil when the configuration could not be read.
func (f *FollowedOptions) Reread() (now *localmaster.Config, err error) {
	defer f.c.Changed()
	now, err = localmaster.LoadConfig(f.c.Path, f.c.Master.Version)
	if err != nil {
		f.c.Logger.Warn("cannot reread the master's configuration", "err", f.keep(err))
		return nil, err
	}
	f.compare(now)
	f.c.Latest(now)
	if err := f.Use(now); err != nil {
		f.c.Logger.Error("the master's options are not followed; the previous ones remain in effect", "err", err)
		return now, err
	}
	return now, nil
}

// builtBy are the options of the master by which saltclusterd builds itself when it starts. It does not follow them.
var builtBy = []string{
	"user", "id", "master_id", "pki_dir", "cachedir", "sock_dir", "ipc_mode", "tcp_master_pub_port",
	"tcp_master_pull_port", "interface", "publish_port", "ret_port", "transport", localmaster.FileRoots,
	localmaster.PillarRoots, "fileserver_backend", "cache", "minion_data_cache", "enforce_mine_cache",
	"preserve_minion_cache", "pillar_cache", "pillar.cache_driver", "eauth_tokens", "eauth_tokens.cache_driver",
	"hash_type", "master_job_cache", "ext_job_cache", "max_event_size", "publish_session",
}

// builtByOthers lists those that differ between two configurations.
func builtByOthers(then, now *localmaster.Config) (names []string) {
	for _, name := range builtBy {
		if !localmaster.SameOptions(then, now, []string{name}) {
			names = append(names, name)
		}
	}
	return names
}

// compare notes the options that differ from the start and are not followed.
func (f *FollowedOptions) compare(now *localmaster.Config) {
	names := builtByOthers(f.c.Master, now)
	if before := f.outdated.Swap(&names); len(names) > 0 && (before == nil || !slices.Equal(*before, names)) {
		f.c.Logger.Warn("options of the salt-master have changed since saltclusterd was started: reload saltclusterd", "options", names)
	}
}

// Check warns while saltclusterd does not work by the options that the master has.
func (f *FollowedOptions) Check() health.Result {
	if why := f.unread.Load(); why != nil {
		return health.Result{
			Level:  health.Warn,
			Reason: "the salt-master's options are not followed; the previous ones remain in effect: " + *why,
			Hint:   "correct that, then restart the salt-master (systemctl restart salt-master)",
		}
	}
	names := f.outdated.Load()
	if names == nil || len(*names) == 0 {
		return fine
	}
	hint := "systemctl reload saltclusterd"
	inUnit := []string{"user", "pki_dir", "cachedir", "sock_dir", localmaster.FileRoots, localmaster.PillarRoots}
	if slices.ContainsFunc(inUnit, func(name string) bool { return slices.Contains(*names, name) }) {
		hint = "systemctl daemon-reload; systemctl restart saltclusterd" // the unit has to be generated again
	}
	return health.Result{
		Level: health.Warn,
		Reason: "options of the salt-master have changed since saltclusterd was started, " +
			"and saltclusterd still uses the previous ones: " + strings.Join(*names, ", "),
		Hint: hint,
	}
}

// Pusher returns a function that names the minion, of those that are known, that has pushed the file of a path
// (router.View.Pusher); nil: no pushed files are served.
func (f *FollowedOptions) Pusher(known func(id string) bool) func(path string) string {
	now := f.Load()
	if now == nil || !now.ServesPushed() {
		return nil
	}
	return func(path string) string {
		if id := now.PushedBy(path); known(id) {
			return id
		}
		return ""
	}
}
