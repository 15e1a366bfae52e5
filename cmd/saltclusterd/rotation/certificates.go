package rotation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/metric"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/signal"
)

// A node renews its certificate (peer.Identity.Renew) and proposes the new one for the roster. The old one stays
// valid until then, and for members that apply the change later. After a crash or a lost majority, the certificate on
// disk is announced until the roster has it.

const (
	// certificateInterval is how often a node checks the age of its certificate, and whether the roster has it.
	certificateInterval = 15 * time.Second
	// requestInterval is the shortest time between two renewals that other members ask for. Each one drops the oldest
	// predecessor, by which a node that was down may recognize this one.
	requestInterval = time.Hour
	// PathCertificate is the path of the call that asks a member to renew its certificate.
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
	// Claim blocks joins and upgrades of this node until release is called. ok is false while one is under way.
	Claim func() (release func(), ok bool)
	// NotMember returns the error of a node that is not a member.
	NotMember func() error
	// Registerer gets the age of the certificate, and that at which it is renewed; nil: neither.
	Registerer prometheus.Registerer
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
	c := &Certificates{cfg: cfg, renew: make(chan struct{}, 1)}
	f := metric.NewSet(cfg.Registerer, "peer")
	f.NewGaugeFunc("certificate_age_seconds", "Age of this node's certificate for the peer port.",
		func() float64 { return time.Since(c.madeAt()).Seconds() })
	f.NewGauge("certificate_max_age_seconds",
		"Age at which that certificate is renewed (cluster_certificate_age); 0: only on request.").Set(cfg.MaxAge.Seconds())
	return c
}

// Handle routes the calls of other members.
func (c *Certificates) Handle(mux *peerrpc.Mux) {
	mux.Handle(certificateRPC.Pattern(), certificateRPC.Handler(c.renewForPeer))
}

// Run announces what the roster does not have, and renews what is too old, until ctx ends.
func (c *Certificates) Run(ctx context.Context) {
	look := time.NewTicker(certificateInterval)
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
		return nil // this node was removed
	case e.Fingerprint != c.cfg.Identity.Fingerprint():
		return c.announce(ctx, e.Fingerprint)
	case reason == "":
		return nil
	}
	_, err := c.renewOwn(ctx, reason)
	return err
}

// isAged tells whether the certificate is older than configured. Nodes reach that age at different times. One from the
// future was made by a wrong clock, and its age is not known.
func (c *Certificates) isAged(now time.Time) bool {
	limit := c.cfg.MaxAge
	age := now.Sub(c.madeAt())
	return limit > 0 && (age > limit-earlyBy(c.cfg.Self, limit) || age < -hlc.MaxAhead)
}

// earlyBy returns how much before the limit a node renews, up to a tenth of it.
func earlyBy(id node.ID, limit time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return limit / 10 * time.Duration(h.Sum32()%1024) / 1024
}

// madeAt returns when the certificate was made. Certificates of old versions do not say it; the time of their file
// does.
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

// renewOwn makes another key and certificate for this node and waits until the cluster has agreed.
func (c *Certificates) renewOwn(ctx context.Context, reason string) (node.Fingerprint, error) {
	release, ok := c.cfg.Claim() // a join or another process may be using it
	if !ok {
		return "", adminapi.Errorf(adminapi.CodeBusy, "repeat it later",
			"a join or an upgrade of %s is under way", c.cfg.Self)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := c.cfg.Log.Barrier(ctx); err != nil { // nothing is changed without a majority
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

// announce replaces the certificate that the roster has of this node.
func (c *Certificates) announce(ctx context.Context, was node.Fingerprint) error {
	own := c.cfg.Identity
	if !own.Knows(was) { // another process of this node has renewed it
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

// certificateReport is a node's answer to PathCertificate. The node renews its certificate after the answer, because
// that cuts the connection of the call.
type certificateReport struct {
	Fingerprint node.Fingerprint `json:"fingerprint"` // now
	Made        time.Time        `json:"made"`
	Renews      bool             `json:"renews"` // false: it was asked less than requestInterval ago
}

var certificateRPC = peerrpc.Endpoint[peerrpc.None, certificateReport]{
	Method: http.MethodPost, Path: PathCertificate, MaxQuestion: maxCertificate, MaxAnswer: maxCertificate,
}

// renewForPeer renews the certificate for another member, at most once in requestInterval.
func (c *Certificates) renewForPeer(context.Context, node.ID, peerrpc.None) (certificateReport, error) {
	report := certificateReport{Fingerprint: c.cfg.Identity.Fingerprint(), Made: c.madeAt().UTC()}
	if report.Renews = c.acceptRequest(time.Now()); report.Renews {
		signal.Send(c.renew)
	}
	return report, nil
}

// acceptRequest tells whether requestInterval has passed since the last accepted request.
func (c *Certificates) acceptRequest(now time.Time) bool {
	last := c.asked.Load()
	return (last == 0 || now.Sub(time.UnixMilli(last)) >= requestInterval) && c.asked.CompareAndSwap(last, now.UnixMilli())
}

// Rotate renews the certificates of all members one after the other, or that of RotateRequest.Node. This node's own is
// the last: it closes the connections by which the others are asked.
func (c *Certificates) Rotate(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	if err := c.cfg.Knows(state.LevelJoin); err != nil {
		return adminapi.Outcome{}, err
	}
	var done []string
	var out adminapi.Outcome
	found := false
	members := c.cfg.Log.View().Members()
	if i := slices.IndexFunc(members, func(m state.Member) bool { return m.ID == c.cfg.Self }); i >= 0 {
		own := members[i]
		members = append(slices.Delete(members, i, i+1), own)
	}
	for _, mem := range members {
		if r.Node != "" && r.Node != string(mem.ID) {
			continue
		}
		found = true
		if !c.cfg.Alive(mem.ID) {
			out.Next = append(out.Next, fmt.Sprintf("%s is down: its certificate stays as it is; repeat this when it is back, "+
				"or make the certificate worthless at once: saltclusterctl remove %s", mem.ID, mem.ID))
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
		return out, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members lists them",
			"%.40q is not a member", r.Node)
	}
	out.Message = "new certificates: " + joinNames(done)
	if r.DryRun {
		out.Message = "these would get another key and certificate: " + joinNames(done)
	}
	return out, nil
}

// rotateOne renews the certificate of a member that is up. text describes the result.
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
		return "", fmt.Errorf("already requested less than %s ago; the certificate is %s old; "+
			"to renew it now, run saltclusterctl rotate certificates --node %s on that node",
			requestInterval, time.Since(report.Made).Round(time.Second), id)
	}
	for {
		if now, ok := c.cfg.Roster.Lookup(id); ok && now.Fingerprint != e.Fingerprint {
			return fmt.Sprintf("%s has a new certificate: %s", id, now.Fingerprint.Short()), nil
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return "", errors.New("no new certificate in time; see the log of that node")
		}
	}
}
