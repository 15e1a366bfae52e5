package joining

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

const (
	joinRetryMin = time.Second
	joinRetryMax = 15 * time.Second
)

// errBusy is returned while an operator's bootstrap or join is under way.
var errBusy = errors.New("another bootstrap or join is under way")

// JoinPeers asks the configured peers one after the other, again and again, until this node is a member or ctx ends.
func (j *Joiner) JoinPeers(ctx context.Context) {
	pause := backoff.Backoff{Min: joinRetryMin, Max: joinRetryMax}
	for {
		refused := false
		for _, addr := range j.cfg.Options.PeerAddresses() {
			err := j.joinUnlessBusy(ctx, addr)
			if err == nil || ctx.Err() != nil {
				return
			}
			level := j.cfg.Logger.Info
			if !peer.JoinRetryable(err) && !errors.Is(err, errBusy) {
				level, refused = j.cfg.Logger.Error, true
			}
			level("not joined", "addr", addr, "err", err)
			j.mu.Lock()
			j.problem = err
			j.mu.Unlock()
		}
		if !backoff.Sleep(ctx, pauseAfter(&pause, refused)) {
			return
		}
	}
}

// pauseAfter returns the pause after all peers were asked in vain. Where one refuses, a configuration has to be changed
// first.
func pauseAfter(pause *backoff.Backoff, refused bool) time.Duration {
	if refused {
		return joinRetryMax
	}
	return pause.Next()
}

// Problem returns why JoinPeers failed last, nil when it did not.
func (j *Joiner) Problem() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.problem
}

// joinUnlessBusy joins through the member at addr unless another operation is under way.
func (j *Joiner) joinUnlessBusy(ctx context.Context, addr string) error {
	if !j.cfg.Operations.TryBegin() {
		return errBusy
	}
	defer j.cfg.Operations.End()
	if err := j.refuseMember(); err != nil {
		return err
	}
	p := func(step, message string, _ ...int) { j.cfg.Logger.Info("join", "step", step, "reason", message) }
	return j.joinThrough(ctx, addr, adminapi.JoinRequest{}, p)
}

// joinThrough asks the member at addr to admit this node.
func (j *Joiner) joinThrough(ctx context.Context, addr string, r adminapi.JoinRequest, p admin.Progress) error {
	o := j.cfg.Options.Cluster
	advertise, err := j.cfg.Advertise()
	if err != nil {
		return err
	}
	minions, err := j.readLocalMinions(ctx)
	if err != nil {
		return err
	}
	wish := requestPayload{Witness: o.Witness, Signs: !o.Witness && j.cfg.Master.Signs()}
	if !r.KeysPending {
		wish.Accepted = minions.hashes()
	}
	payload, err := json.Marshal(wish)
	if err != nil {
		return fmt.Errorf("encode join request: %w", err)
	}
	fits := minions.checkIdentity
	if r.ReplaceKey {
		fits = nil
	}
	c := j.credentialsFor(r)
	token, err := c.parseToken()
	if err != nil {
		return err
	}
	p("prove", "asking "+addr+" for admission with "+describeToken(token))
	reply, err := peer.Join(ctx, peer.JoinConfig{
		Addr: addr, Identity: j.cfg.Identity(), Advertise: advertise,
		Secret: peer.SecretBytes(c.secret.Reveal()), Token: token, ClusterID: o.ID,
		PubFingerprint: c.fingerprint, Payload: payload, Fits: fits,
	})
	if err != nil {
		return err
	}
	joined, err := parseReplyPayload(reply.Payload)
	if err != nil {
		return err
	}
	p("member", "admitted by "+string(reply.Member.ID))
	return j.takeReply(joined, r.ReplaceKey, p)
}

// takeReply makes this node the member that it was admitted as. Nothing was written before.
func (j *Joiner) takeReply(r replyPayload, replaceKey bool, p admin.Progress) error {
	if r.Version != replyVersion {
		return fmt.Errorf("the cluster uses version %d of the join protocol, but this saltclusterd uses version %d: install the same version", r.Version, replyVersion)
	}
	if err := j.InstallIdentity(r.Private, r.Public, p); err != nil {
		return err
	}
	if err := j.installSigningKey(r.Signing, replaceKey, p); err != nil {
		return err
	}
	m := &membership.Record{UUID: r.UUID, Generation: r.Generation, GossipKeys: r.GossipKeys}
	if err := j.writeMembership(m, r.Rev, r.Members); err != nil {
		return err
	}
	j.cfg.Joined()
	return nil
}

// InstallIdentity stores the cluster's key pair, and installs it as the local master's. A witness stores the public key
// only.
func (j *Joiner) InstallIdentity(private, public []byte, p admin.Progress) error {
	o := j.cfg.Options.Cluster
	if o.Witness {
		return membership.WritePublicIdentity(o.PKIDir, public)
	}
	if _, err := saltcrypt.ParseMasterKey(private); err != nil {
		return fmt.Errorf("the cluster's identity: %w", err)
	}
	if err := membership.WriteIdentity(o.PKIDir, private, public); err != nil {
		return err
	}
	changed, backup, err := j.cfg.Master.InstallIdentity(private, public)
	if err != nil {
		return fmt.Errorf("install the cluster's identity: %w", err)
	}
	stored, err := j.cfg.Master.StoreIdentity(private)
	if err != nil {
		return err
	}
	switch {
	case stored:
		p("identity", "the cluster's identity is installed in the master's key store; the old one is kept there")
	case changed && backup != "":
		p("identity", "the cluster's identity is installed as master.pem; the old one is kept as "+backup)
	case changed:
		p("identity", "the cluster's identity is installed as master.pem")
	}
	return nil
}

// installSigningKey installs what the cluster's masters sign its public key with, if the admitting member's does.
func (j *Joiner) installSigningKey(private []byte, replace bool, p admin.Progress) error {
	if len(private) == 0 || j.cfg.Options.Cluster.Witness {
		return nil
	}
	changed, backup, err := j.cfg.Master.InstallSigningKey(private, replace)
	switch {
	case errors.Is(err, localmaster.ErrOtherSigningKey):
		p("identity", "this master signs the cluster's public key (master_sign_pubkey) with another key than the cluster's: "+
			"saltclusterctl status lists these masters")
		return nil
	case err != nil:
		return fmt.Errorf("install the key that the cluster's masters sign with: %w", err)
	case changed && backup != "":
		p("identity", "the key that the cluster's masters sign with is installed; the old one is kept as "+backup)
	case changed:
		p("identity", "the key that the cluster's masters sign with is installed")
	}
	return nil
}

// withCode gives the error of a join the code that scripts read.
func withCode(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, peer.ErrSlowDown):
		return adminapi.Errorf(adminapi.CodeUnreachable, "an earlier attempt failed: wait some seconds and repeat the command",
			"%v", err)
	case errors.Is(err, peer.ErrUnreachable), errors.Is(err, peer.ErrNotReady):
		return adminapi.Errorf(adminapi.CodeUnreachable, "check the address, and that saltclusterd is running there", "%v", err)
	default:
		return adminapi.Errorf(adminapi.CodeRefused, "nothing was changed on this node", "%v", err)
	}
}
