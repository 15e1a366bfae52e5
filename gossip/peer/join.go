package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"saltclusterd/gossip/jointoken"
	"saltclusterd/gossip/node"
)

// JoinConfig is what a node needs to join. Secret or Token is required, and all other fields but PubFingerprint and
// Payload.
type JoinConfig struct {
	Addr           string // host:port of any member; a name is resolved
	Identity       *Identity
	Advertise      netip.AddrPort // where others reach this node; see ResolveAdvertise
	Secret         []byte         // see SecretBytes; not looked at when there is a token
	Token          jointoken.Token
	ClusterID      string // option cluster_id
	PubFingerprint string // option cluster_pub_fingerprint; empty: the key is taken as it is shown
	Payload        []byte // opaque; goes to the member's JoinHandler.Admit, and only when everything matched
	// Fits, if not nil, looks at the cluster's public key (PEM), which the member has proved to hold, before the cluster
	// is asked for anything. Its error ends the join.
	Fits func(clusterPub []byte) error
}

// JoinReply is what a member said.
type JoinReply struct {
	Payload    []byte     // what JoinHandler.Admit returned
	Member     node.Entry // whom we asked
	ClusterID  string
	ClusterPub []byte // PEM; the member proved to hold the private key
}

// Times of a join on the joiner's side.
const (
	joinDial  = 5 * time.Second
	joinProof = 5 * time.Second
	joinAdmit = 60 * time.Second
)

// Join asks a member to take this node in. Errors are sentences that name the option to look at; JoinRetryable tells
// whether trying again makes sense. It needs no Port.
func Join(ctx context.Context, cfg JoinConfig) (JoinReply, error) {
	reply, err := joinThrough(ctx, cfg)
	if err != nil {
		return JoinReply{}, fmt.Errorf("join through %s: %w", cfg.Addr, err)
	}
	return reply, nil
}

func (c JoinConfig) validate() error {
	switch {
	case c.Identity == nil:
		return errors.New("no identity")
	case !c.Advertise.IsValid():
		return errors.New("no address to advertise; set cluster_advertise")
	case len(c.Payload) > MaxJoinPayload:
		return fmt.Errorf("payload of %d bytes, at most %d are allowed", len(c.Payload), MaxJoinPayload)
	case len(c.ClusterID) > maxClusterID || !node.IsPrintable([]byte(c.ClusterID)):
		return errors.New("cluster_id is too long or not printable")
	case c.Token.IsZero() && strings.TrimSpace(string(c.Secret)) == "":
		return errors.New("this node has no cluster_secret, and was given no token: saltclusterctl token create on a member prints one, " +
			"then here: saltclusterctl join PEER --token-file -")
	case c.Token.IsZero():
		return ValidateSecret(string(c.Secret))
	}
	return nil
}

func joinThrough(ctx context.Context, cfg JoinConfig) (JoinReply, error) {
	if err := cfg.validate(); err != nil {
		return JoinReply{}, err
	}
	if cfg.PubFingerprint != "" {
		fp, err := ParsePubFingerprint(cfg.PubFingerprint)
		if err != nil {
			return JoinReply{}, err
		}
		cfg.PubFingerprint = fp
	}
	dialCtx, cancel := context.WithTimeout(ctx, joinDial)
	defer cancel()
	d := &tls.Dialer{Config: clientTLS(cfg.Identity, ProtoJoin, func(shown) error { return nil })}
	c, err := d.DialContext(dialCtx, "tcp", cfg.Addr)
	if err != nil {
		return JoinReply{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	j, err := newJoiner(cfg, c.(*tls.Conn))
	if err != nil {
		return JoinReply{}, err
	}
	reply, err := j.runJoin()
	if err != nil && ctx.Err() != nil {
		return JoinReply{}, context.Cause(ctx)
	}
	return reply, err
}

// joiner is one conversation, from the joiner's side.
type joiner struct {
	cfg    JoinConfig
	conn   *tls.Conn
	proof  Proof
	member node.Entry
}

func newJoiner(cfg JoinConfig, t *tls.Conn) (*joiner, error) {
	peer, err := peerCert(t.ConnectionState())
	if err != nil {
		return nil, err
	}
	id, err := idFromCert(peer.cert)
	if err != nil {
		return nil, fmt.Errorf("no saltclusterd answers there: %w", err)
	}
	fp, own := peer.fingerprint(), cfg.Identity.Fingerprint()
	if fp == own {
		return nil, ErrSelf
	}
	material, err := exportKeying(t)
	if err != nil {
		return nil, err
	}
	j := &joiner{cfg: cfg, conn: t, member: node.Entry{ID: id, Fingerprint: fp}}
	if a, ok := t.RemoteAddr().(*net.TCPAddr); ok {
		j.member.Addr = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	j.proof = Proof{
		Exporter: material, Joiner: cfg.Identity.id, JoinerFP: own, Member: id, MemberFP: fp,
	}
	return j, nil
}

func (j *joiner) runJoin() (JoinReply, error) {
	if err := j.conn.SetDeadline(time.Now().Add(joinProof)); err != nil {
		return JoinReply{}, err
	}
	prove := j.proveSecret
	if !j.cfg.Token.IsZero() {
		prove = j.proveToken
	}
	if err := prove(); err != nil {
		return JoinReply{}, err
	}
	cluster, err := j.checkCluster()
	if err != nil {
		return JoinReply{}, err
	}
	if err := j.conn.SetDeadline(time.Now().Add(joinAdmit)); err != nil {
		return JoinReply{}, err
	}
	req := request{ClusterID: j.cfg.ClusterID, Advertise: j.cfg.Advertise.String(), Payload: j.cfg.Payload}
	if err := writeFrame(j.conn, frameRequest, req.appendTo(nil)); err != nil {
		return JoinReply{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	body, err := j.readReply(frameReply, MaxJoinReply, true)
	if err != nil {
		return JoinReply{}, err
	}
	return JoinReply{Payload: body, Member: j.member, ClusterID: cluster.ClusterID, ClusterPub: cluster.PubPEM}, nil
}

// proveSecret sends our proof and checks the member's.
func (j *joiner) proveSecret() error {
	h := hello{ID: j.cfg.Identity.id, Proof: j.proof.macFor(j.cfg.Secret, roleJoiner)}
	if err := writeFrame(j.conn, frameHello, h.appendTo(nil)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	body, err := j.readReply(frameProof, maxUnproven, false)
	if err != nil {
		return err
	}
	if !j.proof.verifyMAC(j.cfg.Secret, roleMember, body) {
		return fmt.Errorf("%w: %s did not prove that it has the same secret: either cluster_secret differs there, or it is not a node of "+
			"this cluster. The secret itself was not sent", ErrSecret, j.member.ID)
	}
	return nil
}

// proveToken proves that we hold the token. What the member proves in return is the cluster's key.
func (j *joiner) proveToken() error {
	tok := j.cfg.Token
	h := hello{ID: j.cfg.Identity.id, SecretID: tok.ID(), Proof: tok.Sign(j.proof.tokenMessage(tok.ID())), Signed: true}
	if err := writeFrame(j.conn, frameHello, h.appendTo(nil)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// checkCluster compares what the member shows of its cluster with our options, before anything is told to it.
func (j *joiner) checkCluster() (clusterProof, error) {
	withToken := !j.cfg.Token.IsZero()
	body, err := j.readReply(frameCluster, maxCluster, !withToken)
	if err != nil {
		return clusterProof{}, err
	}
	c, err := parseCluster(body)
	if err != nil {
		return clusterProof{}, err
	}
	if c.ClusterID != j.cfg.ClusterID {
		return clusterProof{}, fmt.Errorf("%w: %s belongs to the cluster %q, but cluster_id here is %q", ErrClusterID,
			j.member.ID, c.ClusterID, j.cfg.ClusterID)
	}
	if err := verifyCluster(c.PubPEM, j.proof.clusterMessage(), c.Signature); err != nil {
		return clusterProof{}, fmt.Errorf("%w: %s did not prove that it has the key of the cluster: %w", ErrClusterKey,
			j.member.ID, err)
	}
	if withToken && !pubMatches(j.cfg.Token.Cluster(), c.PubPEM) {
		return clusterProof{}, fmt.Errorf("%w: the cluster's public key has the fingerprint %s, but the token is for the cluster with %s",
			ErrClusterKey, PubFingerprint(c.PubPEM), j.cfg.Token.Cluster())
	}
	if pin := j.cfg.PubFingerprint; pin != "" && !pubMatches(pin, c.PubPEM) {
		return clusterProof{}, fmt.Errorf("%w: the cluster's public key has the fingerprint %s, but cluster_pub_fingerprint here is %s",
			ErrClusterKey, PubFingerprint(c.PubPEM), pin)
	}
	if j.cfg.Fits != nil {
		if err := j.cfg.Fits(c.PubPEM); err != nil {
			return clusterProof{}, err
		}
	}
	return c, nil
}

// readReply returns the body of the next frame, which must be of the kind wanted or a refusal. The text of a refusal
// counts only when the member has proved itself.
func (j *joiner) readReply(want byte, limit int, proved bool) ([]byte, error) {
	kind, body, err := readFrame(j.conn, limit)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w: %s did not answer in time", ErrUnreachable, j.member.ID)
	case errors.Is(err, errFrame):
		return nil, err
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %s ended the connection without an answer; its log may say why", ErrUnreachable,
			j.member.ID)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case kind == want:
		return body, nil
	case kind != frameRefused:
		return nil, fmt.Errorf("%w: unexpected type %d", errFrame, kind)
	}
	r, err := parseRefused(body)
	if err != nil {
		return nil, err
	}
	return nil, j.refusalError(r, proved)
}

func (j *joiner) refusalError(r refused, proved bool) error {
	switch r.Code {
	case refusedNotReady:
		return fmt.Errorf("%w: ask another one, or bootstrap the cluster there first", ErrNotReady)
	case refusedSlowDown:
		return fmt.Errorf("%w: too many attempts from this address", ErrSlowDown)
	case refusedVersion:
		return fmt.Errorf("%w: update the older of the two nodes", ErrVersion)
	case refusedProof:
		return j.proofError()
	}
	if !proved {
		return fmt.Errorf("%w: refusal %d", ErrUnreachable, r.Code)
	}
	if r.Code == refusedInternal {
		return fmt.Errorf("%w: %s had an internal error; its log says more", ErrUnreachable, j.member.ID)
	}
	return fmt.Errorf("%w: %s", ErrRefused, r.Text)
}

// proofError is that the member found our proof wrong. A node that answers in its stead can say the same.
func (j *joiner) proofError() error {
	if tok := j.cfg.Token; !tok.IsZero() {
		return fmt.Errorf("%w by %s: the token %s was revoked, was used long ago, or belongs to another cluster", ErrToken,
			j.member.ID, tok.ID())
	}
	return fmt.Errorf("%w: %s refused our proof; set the same cluster_secret on both nodes (an impostor at that "+
		"address would look the same)", ErrSecret, j.member.ID)
}
