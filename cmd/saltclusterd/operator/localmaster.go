package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"saltclusterd/sidecar"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/upstream"
)

// signInTime is how long a sign-in at a salt-master that has just come up may take before that is a problem.
const signInTime = 30 * time.Second

// Requests is the request port of the local master.
type Requests interface {
	Up() bool
	Stats() upstream.ReqStats
}

// Publications is the publish port of the local master.
type Publications interface{ Up() bool }

// SignIn is how saltclusterd signs in at the local master, as a minion would.
type SignIn interface {
	State() (signedIn bool, err error)
	FailingSince() time.Time
}

// LocalMaster is the connection to the local salt-master as operators see it.
type LocalMaster struct {
	Requests     Requests
	Publications Publications
	SignIn       SignIn
	Options      *localmaster.Config
	ConfigPath   string      // of the master's configuration
	ShareHangs   func() bool // whether the file system that it shares with others hangs
	Outdated     func() bool // whether it still has to be restarted after a migration
}

// Serves says whether the local master can take requests of minions.
func (m *LocalMaster) Serves() bool {
	signedIn, _ := m.SignIn.State()
	return m.Requests.Up() && signedIn && !m.ShareHangs() && !m.Outdated()
}

// Report returns the row of the status.
func (m *LocalMaster) Report() adminapi.Upstream {
	up := m.Requests.Stats()
	signedIn, err := m.SignIn.State()
	out := adminapi.Upstream{
		Address: m.Options.ReqAddr(), Up: up.Up, Subscribed: m.Publications.Up(), SignedIn: signedIn,
		Connections: up.Conns, Queued: up.Waiting,
	}
	if err != nil && !m.isArriving(up, err) {
		out.Error = describeSignIn(err)
	}
	return out
}

// CheckOwn is the health check of what is beside the local master and knows no other, as salt-api.
func (m *LocalMaster) CheckOwn() health.Result {
	if problem := m.Problem(); problem != "" {
		return health.Result{Level: health.Fail, Reason: "the local salt-master does not serve", Hint: problem}
	}
	return fine
}

// Problem returns what is wrong with the local master and what to do; empty if nothing is.
func (m *LocalMaster) Problem() string {
	addr := m.Options.ReqAddr()
	signedIn, err := m.SignIn.State()
	stalled := m.Requests.Stats().Stalled
	switch {
	case stalled == upstream.Silent:
		return fmt.Sprintf("check the salt-master (systemctl status salt-master): it makes no progress (stopped?) and sends nothing from %s", addr)
	case stalled == upstream.Stuck:
		return fmt.Sprintf("check the salt-master (systemctl status salt-master): none of its workers at %s answers "+
			"(hung on a pillar or disk?)", addr)
	case !m.Requests.Up():
		return m.describeDown()
	case errors.Is(err, sidecar.ErrForeignIdentity):
		return "restart the salt-master: it still presents its old master.pub (systemctl restart salt-master)"
	case errors.Is(err, localmaster.ErrStaleIdentity):
		return "restart the salt-master: it still signs with an older key than it has stored (systemctl restart salt-master)"
	case !signedIn && m.isArriving(m.Requests.Stats(), err):
		return fmt.Sprintf("wait: the salt-master at %s has started, and saltclusterd signs in to it within seconds", addr)
	case !signedIn:
		return fmt.Sprintf("the salt-master at %s does not let saltclusterd sign in: %s", addr, describeSignIn(err))
	case !m.Publications.Up():
		return fmt.Sprintf("the salt-master does not publish at %s", m.Options.PubAddr())
	}
	return ""
}

// describeDown says what to do about a master that is not there. It may fail to start with the content of its files.
func (m *LocalMaster) describeDown() string {
	if _, err := localmaster.LoadConfig(m.ConfigPath, m.Options.Version); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("correct the salt-master's configuration, with which it cannot start: %v; then: systemctl start salt-master", err)
	}
	return fmt.Sprintf("start the salt-master (systemctl start salt-master), or wait while it starts: "+
		"nothing answers at %s", m.Options.ReqAddr())
}

// isArriving says whether the salt-master has just come up, so that a sign-in that did not reach it is tried again
// soon.
func (m *LocalMaster) isArriving(up upstream.ReqStats, err error) bool {
	return isArriving(up, m.SignIn.FailingSince(), err, time.Now())
}

// isArriving counts from the later of two moments: a salt-master that drops every sign-in is up all the while, and
// one that was restarted between two looks has just begun to fail.
func isArriving(up upstream.ReqStats, failing time.Time, err error, now time.Time) bool {
	from := up.Since
	if failing.After(from) {
		from = failing
	}
	unreached := err == nil || errors.Is(err, upstream.ErrDown) || errors.Is(err, upstream.ErrLost)
	return up.Up && unreached && now.Sub(from) < signInTime
}

// describeSignIn says why saltclusterd could not sign in at its salt-master. The log has the error itself.
func describeSignIn(err error) string {
	if err == nil {
		return "it has not tried yet"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errors.Is(err, upstream.ErrDown) {
		return errno.Error()
	}
	for _, c := range []struct {
		is   error
		text string
	}{
		{sidecar.ErrForeignIdentity, "it still presents its old master.pub"},
		{localmaster.ErrStaleIdentity, "it still signs with an older key than it has stored"},
		{localmaster.ErrHiddenPending, "it holds saltclusterd's own key as pending"},
		{localmaster.ErrHiddenRejected, "it refuses saltclusterd's own key"},
		{localmaster.ErrHiddenFull, "its max_minions leaves no room for saltclusterd"},
		{localmaster.ErrHiddenReply, "its answer to a sign-in is not that of a salt-master"},
		{upstream.ErrDown, "nothing answers there"},
		{upstream.ErrLost, "it closed the connection"},
		{upstream.ErrBusy, "it does not answer as fast as minions ask"},
		{context.DeadlineExceeded, "it did not answer in time"},
	} {
		if errors.Is(err, c.is) {
			return c.text
		}
	}
	return err.Error()
}
