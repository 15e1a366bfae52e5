package rotation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	// certificateLook is how often a node looks at its certificate's age, and whether the roster has it.
	certificateLook = 15 * time.Second
	// certificateRest is how long another member's word renews nothing after one that did: each renewal takes the place of the
	// oldest predecessor, by which a node that was away may know us.
	certificateRest = time.Hour
	// PathCertificate is where a member asks another one to renew its certificate.
	PathCertificate = "/v1/certificate"
	maxCertificate  = 4 << 10
	renewWithin     = 20 * time.Second
)

// CertificatesConfig configures Certificates.
type CertificatesConfig struct {
	Membership
	Identity *peer.Identity // of this node
	StateDir string         // where it is kept
	MaxAge   time.Duration  // after which a certificate is renewed; 0: never
	Roster   Roster
	Client   peerrpc.Client
	// Claim keeps joins and upgrades of this node away until release is called. ok is false while one is under way.
	Claim func() (release func(), ok bool)
	// NotMember is the error for an operator of a node that is no member any more.
	NotMember func() error
}

// Roster is the list of members that the peer port trusts (peer.Book).
type Roster interface {
	Lookup(id node.ID) (node.Entry, bool)
}

// Certificates renews the certificate of this node, and asks other members to renew theirs.
type Certificates struct {
	cfg   CertificatesConfig
	renew chan struct{} // another member asks for it
	asked atomic.Int64  // when one did last, Unix time in milliseconds
}

// NewCertificates returns a Certificates. It renews nothing before Run.
func NewCertificates(cfg CertificatesConfig) *Certificates {
	return &Certificates{cfg: cfg, renew: make(chan struct{}, 1)}
}

// Handle routes the calls of other members.
func (c *Certificates) Handle(mux *peerrpc.Mux) {
	mux.Handle(certificateRPC.Pattern(), certificateRPC.Handler(c.renewForPeer))
}

// Run announces what the roster does not have, and renews what is too old, until ctx ends.
func (c *Certificates) Run(ctx context.Context) {
	look := time.NewTicker(certificateLook)
	defer look.Stop()
	for {
		reason := ""
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-c.renew:
			reason = "an operator, on another node"
		}
		if !c.cfg.Log.Status().HasQuorum || !c.cfg.Log.CaughtUp() {
			continue
		}
		if err := c.renewIfDue(ctx, reason); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("certificate not renewed", "node", c.cfg.Self, "err", err)
		}
	}
}

// renewIfDue announces or renews the certificate when one of them is due.
func (c *Certificates) renewIfDue(ctx context.Context, reason string) error {
	if reason == "" && c.isAged(time.Now()) && c.cfg.Knows(state.LevelJoin) == nil {
		reason = "its age"
	}
	switch e, ok := c.cfg.Roster.Lookup(c.cfg.Self); {
	case !ok:
		return nil // it will hear why
	case e.Fingerprint != c.cfg.Identity.Fingerprint():
		return c.announce(ctx, e.Fingerprint)
	case reason == "":
		return nil
	}
	_, err := c.renewOwn(ctx, reason)
	return err
}

// isAged says whether the certificate is older than the operator wants. Nodes take turns: not all of them reach the
// age at the same time.
func (c *Certificates) isAged(now time.Time) bool {
	limit := c.cfg.MaxAge
	return limit > 0 && now.Sub(c.madeAt()) > limit-early(c.cfg.Self, limit)
}

// early is how much earlier than others a node renews, up to a tenth.
func early(id node.ID, limit time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return limit / 10 * time.Duration(h.Sum32()%1024) / 1024
}

// madeAt is when the certificate was made; one of the first kind does not say it, but its file does.
func (c *Certificates) madeAt() time.Time {
	made := c.cfg.Identity.Made()
	if !made.IsZero() {
		return made
	}
	if st, err := os.Stat(filepath.Join(c.cfg.StateDir, peer.CertFile)); err == nil {
		return st.ModTime()
	}
	return time.Now()
}

// renewOwn gives this node another key and certificate, and waits until the cluster has agreed.
func (c *Certificates) renewOwn(ctx context.Context, reason string) (node.Fingerprint, error) {
	release, ok := c.cfg.Claim() // not while a join, or another process, does something with it
	if !ok {
		return "", adminapi.Errorf(adminapi.CodeBusy, "repeat it later", "a join or an upgrade of %s is under way", c.cfg.Self)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := c.cfg.Log.Barrier(ctx); err != nil { // nothing is begun without a majority
		return "", c.cfg.NoQuorum(err)
	}
	e, ok := c.cfg.Roster.Lookup(c.cfg.Self)
	if !ok {
		return "", c.cfg.NotMember()
	}
	if e.Fingerprint != c.cfg.Identity.Fingerprint() {
		return c.cfg.Identity.Fingerprint(), c.announce(ctx, e.Fingerprint)
	}
	was, is, err := c.cfg.Identity.Renew(c.cfg.StateDir, time.Now())
	if err != nil {
		return "", err
	}
	c.cfg.Logger.Info("certificate renewed", "node", c.cfg.Self, "fingerprint", is.Short(), "reason", reason)
	return is, c.announce(ctx, was)
}

// announce puts this node's certificate in the place of the one that the roster has.
func (c *Certificates) announce(ctx context.Context, was node.Fingerprint) error {
	own := c.cfg.Identity
	if !own.Knows(was) { // another process of this node was here meanwhile
		if news, err := own.Reload(c.cfg.StateDir); err != nil || !news {
			return err
		}
		if own.Fingerprint() == was {
			return nil
		}
	}
	_, err := c.cfg.Decide(ctx, state.MemberCert{
		ID: c.cfg.Self, Expect: string(was), Fingerprint: string(own.Fingerprint()), Audit: state.Audit{Cause: "certificate"},
	})
	return err
}

// certificateReport is a node's answer to PathCertificate. It renews its certificate after the answer, for that cuts the
// connection on which it was asked.
type certificateReport struct {
	Fingerprint node.Fingerprint `json:"fingerprint"` // now
	Made        time.Time        `json:"made"`
	Renews      bool             `json:"renews"` // otherwise it was asked a short while ago
}

var certificateRPC = peerrpc.Endpoint[peerrpc.None, certificateReport]{
	Method: http.MethodPost, Path: PathCertificate, MaxQuestion: maxCertificate, MaxAnswer: maxCertificate,
}

// renewForPeer renews the certificate for another member. That cannot be done often: see certificateRest.
func (c *Certificates) renewForPeer(context.Context, node.ID, peerrpc.None) (certificateReport, error) {
	report := certificateReport{Fingerprint: c.cfg.Identity.Fingerprint(), Made: c.madeAt().UTC()}
	if report.Renews = c.acceptRequest(time.Now()); report.Renews {
		select {
		case c.renew <- struct{}{}:
		default: // it is asked already
		}
	}
	return report, nil
}

// acceptRequest says whether the last renewal that another member asked for is long ago.
func (c *Certificates) acceptRequest(now time.Time) bool {
	last := c.asked.Load()
	return (last == 0 || now.Sub(time.UnixMilli(last)) >= certificateRest) && c.asked.CompareAndSwap(last, now.UnixMilli())
}

// Rotate renews the certificates of all members, one after the other, or of one.
func (c *Certificates) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	if err := c.cfg.Knows(state.LevelJoin); err != nil {
		return adminapi.Outcome{}, err
	}
	var done []string
	var out adminapi.Outcome
	found := false
	for _, mem := range c.cfg.Log.View().Members() {
		if r.Node != "" && r.Node != string(mem.ID) {
			continue
		}
		found = true
		if !c.cfg.Alive(mem.ID) {
			out.Next = append(out.Next, fmt.Sprintf("%s is down: its certificate stays as it is; repeat this when it is back, or make the "+
				"certificate worthless at once: saltclusterctl remove %s", mem.ID, mem.ID))
			continue
		}
		text, err := c.rotateOne(ctx, mem.ID, r.DryRun)
		if err != nil {
			out.Next = append(out.Next, fmt.Sprintf("%s: %v; repeat this", mem.ID, err))
			continue
		}
		p("certificate", text)
		done = append(done, string(mem.ID))
	}
	if !found {
		return out, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members lists them", "%.40q is not a member", r.Node)
	}
	out.Message = "new certificates: " + joinNames(done)
	if r.DryRun {
		out.Message = "these would get another key and certificate: " + joinNames(done)
	}
	return out, nil
}

// rotateOne renews the one of a member that is there; text says what has become of it.
func (c *Certificates) rotateOne(ctx context.Context, id node.ID, dry bool) (text string, err error) {
	e, ok := c.cfg.Roster.Lookup(id)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not on the roster", id)
	case dry:
		return fmt.Sprintf("%s would get another key and certificate", id), nil
	case id == c.cfg.Self:
		fp, err := c.renewOwn(ctx, "an operator")
		return fmt.Sprintf("%s has a new certificate: %s", id, fp.Short()), err
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	report, err := certificateRPC.Call(ctx, c.cfg.Client, id, peerrpc.None{})
	if err != nil {
		return "", err
	}
	if !report.Renews {
		return "", fmt.Errorf("it was asked less than %s ago already; its certificate was made %s ago; saltclusterctl rotate certificates --node %s "+
			"on it renews it all the same", certificateRest, time.Since(report.Made).Round(time.Second), id)
	}
	for {
		if now, ok := c.cfg.Roster.Lookup(id); ok && now.Fingerprint != e.Fingerprint {
			return fmt.Sprintf("%s has a new certificate: %s", id, now.Fingerprint.Short()), nil
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return "", errors.New("it has not got a new certificate in time; its log says why")
		}
	}
}
