package daemon

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// A node renews its certificate by itself (peer.Identity.Renew) and has the cluster put the new one in the place of the old one.
// The old one is good until then, also for nodes that hear of it later, so it does not matter where a crash or a lost majority
// interrupts this: what is on disk is announced as long as the roster says something else.

const (
	// certificateLook is how often a node looks at its certificate's age, and whether the roster has it.
	certificateLook = 15 * time.Second
	// certificateRest is how long another member's word renews nothing after one that did: each renewal takes the place of the
	// oldest predecessor, by which a node that was away may know us.
	certificateRest = time.Hour
	// pathCertificate is where a member asks another one to renew its certificate.
	pathCertificate = "/v1/certificate"
	maxCertificate  = 4 << 10
	renewWithin     = 20 * time.Second
)

// keepCertificate announces what the roster does not have, and renews what is too old.
func (m *member) keepCertificate(ctx context.Context) {
	look := time.NewTicker(certificateLook)
	defer look.Stop()
	for {
		reason := ""
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-m.renew:
			reason = "an operator, on another node"
		}
		if !m.cons.Status().HasQuorum || !m.cons.CaughtUp() {
			continue
		}
		if err := m.certificate(ctx, reason); err != nil && ctx.Err() == nil {
			m.log.Warn("certificate not renewed", "node", m.d.id, "err", err)
		}
	}
}

// certificate does what is due now.
func (m *member) certificate(ctx context.Context, reason string) error {
	if reason == "" && m.certificateAged(time.Now()) && m.knows(state.LevelJoin) == nil {
		reason = "its age"
	}
	switch e, ok := m.roster.Lookup(m.d.id); {
	case !ok:
		return nil // it will hear why
	case e.Fingerprint != m.d.identity.Fingerprint():
		return m.announceCertificate(ctx, e.Fingerprint)
	case reason == "":
		return nil
	}
	_, err := m.renewCertificate(ctx, reason)
	return err
}

// certificateAged says whether the certificate is older than the operator wants. Nodes take turns: not all of them reach the
// age at the same time.
func (m *member) certificateAged(now time.Time) bool {
	limit := m.d.cfg.Cluster.CertificateAge
	return limit > 0 && now.Sub(m.certificateMade()) > limit-early(m.d.id, limit)
}

// early is how much earlier than others a node renews, up to a tenth.
func early(id node.ID, limit time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return limit / 10 * time.Duration(h.Sum32()%1024) / 1024
}

// certificateMade is when the certificate was made; one of the first kind does not say it, but its file does.
func (m *member) certificateMade() time.Time {
	made := m.d.identity.Made()
	if !made.IsZero() {
		return made
	}
	if st, err := os.Stat(filepath.Join(m.d.cfg.Paths.StateDir, peer.CertFile)); err == nil {
		return st.ModTime()
	}
	return time.Now()
}

// renewCertificate gives this node another key and certificate, and waits until the cluster has agreed.
func (m *member) renewCertificate(ctx context.Context, reason string) (node.Fingerprint, error) {
	select { // not while a join, or another process, does something with it
	case m.d.op <- struct{}{}:
		defer func() { <-m.d.op }()
	default:
		return "", adminapi.Errorf(adminapi.CodeBusy, "repeat it later", "a join or an upgrade of %s is under way", m.d.id)
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := m.cons.Barrier(ctx); err != nil { // nothing is begun without a majority
		return "", m.noQuorum(err)
	}
	e, ok := m.roster.Lookup(m.d.id)
	if !ok {
		return "", m.d.errNoMember()
	}
	if e.Fingerprint != m.d.identity.Fingerprint() {
		return m.d.identity.Fingerprint(), m.announceCertificate(ctx, e.Fingerprint)
	}
	was, is, err := m.d.identity.Renew(m.d.cfg.Paths.StateDir, time.Now())
	if err != nil {
		return "", err
	}
	m.log.Info("certificate renewed", "node", m.d.id, "fingerprint", is.Short(), "reason", reason)
	return is, m.announceCertificate(ctx, was)
}

// announceCertificate puts this node's certificate in the place of the one that the roster has.
func (m *member) announceCertificate(ctx context.Context, was node.Fingerprint) error {
	own := m.d.identity
	if !own.Knows(was) { // another process of this node was here meanwhile
		if news, err := own.Reload(m.d.cfg.Paths.StateDir); err != nil || !news {
			return err
		}
		if own.Fingerprint() == was {
			return nil
		}
	}
	_, err := m.decide(ctx, state.MemberCert{
		ID: m.d.id, Expect: string(was), Fingerprint: string(own.Fingerprint()), Audit: m.audit("certificate"),
	})
	return err
}

// certificateReport is a node's answer to pathCertificate. It renews its certificate after the answer, for that cuts the
// connection on which it was asked.
type certificateReport struct {
	Fingerprint node.Fingerprint `json:"fingerprint"` // now
	Made        time.Time        `json:"made"`
	Renews      bool             `json:"renews"` // otherwise it was asked a short while ago
}

var certificateRPC = peerrpc.Endpoint[peerrpc.None, certificateReport]{
	Method: http.MethodPost, Path: pathCertificate, MaxQuestion: maxCertificate, MaxAnswer: maxCertificate,
}

// renewForPeer renews the certificate for another member. That cannot be done often: see certificateRest.
func (m *member) renewForPeer(context.Context, node.ID, peerrpc.None) (certificateReport, error) {
	report := certificateReport{Fingerprint: m.d.identity.Fingerprint(), Made: m.certificateMade().UTC()}
	if report.Renews = m.mayBeAsked(time.Now()); report.Renews {
		select {
		case m.renew <- struct{}{}:
		default: // it is asked already
		}
	}
	return report, nil
}

// mayBeAsked says whether the last renewal that another member asked for is long ago.
func (m *member) mayBeAsked(now time.Time) bool {
	last := m.asked.Load()
	return (last == 0 || now.Sub(time.UnixMilli(last)) >= certificateRest) && m.asked.CompareAndSwap(last, now.UnixMilli())
}

// rotateCertificates renews the certificates of all members, one after the other, or of one.
func (m *member) rotateCertificates(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	if err := m.knows(state.LevelJoin); err != nil {
		return adminapi.Outcome{}, err
	}
	var done []string
	var out adminapi.Outcome
	found := false
	for _, mem := range m.cons.View().Members() {
		if r.Node != "" && r.Node != string(mem.ID) {
			continue
		}
		found = true
		if !m.alive(mem.ID) {
			out.Next = append(out.Next, fmt.Sprintf("%s is down: its certificate stays as it is; repeat this when it is back, or make the "+
				"certificate worthless at once: saltclusterctl remove %s", mem.ID, mem.ID))
			continue
		}
		text, err := m.rotateCertificate(ctx, mem.ID, r.DryRun)
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
	out.Message = "new certificates: " + orNone(done)
	if r.DryRun {
		out.Message = "these would get another key and certificate: " + orNone(done)
	}
	return out, nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// rotateCertificate renews the one of a member that is there; text says what has become of it.
func (m *member) rotateCertificate(ctx context.Context, id node.ID, dry bool) (text string, err error) {
	e, ok := m.roster.Lookup(id)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not on the roster", id)
	case dry:
		return fmt.Sprintf("%s would get another key and certificate", id), nil
	case id == m.d.id:
		fp, err := m.renewCertificate(ctx, "an operator")
		return fmt.Sprintf("%s has a new certificate: %s", id, fp.Short()), err
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	report, err := certificateRPC.Call(ctx, m.client(), id, peerrpc.None{})
	if err != nil {
		return "", err
	}
	if !report.Renews {
		return "", fmt.Errorf("it was asked less than %s ago already; its certificate was made %s ago; saltclusterctl rotate certificates --node %s "+
			"on it renews it all the same", certificateRest, time.Since(report.Made).Round(time.Second), id)
	}
	for {
		if now, ok := m.roster.Lookup(id); ok && now.Fingerprint != e.Fingerprint {
			return fmt.Sprintf("%s has a new certificate: %s", id, now.Fingerprint.Short()), nil
		}
		if !backoff.Sleep(ctx, removedPoll) {
			return "", errors.New("it has not got a new certificate in time; its log says why")
		}
	}
}
