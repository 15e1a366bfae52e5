package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"saltclusterd/durable"
	"saltclusterd/fsync/keydir"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// gossipKeySize is the length of a gossip key in bytes: AES-256.
const gossipKeySize = 32

// clusterKeyFiles are the cluster identity's two files in cluster_pki_dir.
func clusterKeyFiles(dir string) (private, public string) {
	return filepath.Join(dir, "cluster.pem"), filepath.Join(dir, "cluster.pub")
}

// bootstrap makes a cluster out of this node: the local master's key becomes its identity.
func (d *Daemon) bootstrap(say admin.Progress) error {
	if err := d.notOnWitness("found one"); err != nil {
		return err
	}
	if err := d.hasBelonged(); err != nil {
		return err
	}
	private, public, err := d.masterKeys().Identity()
	if errors.Is(err, fs.ErrNotExist) {
		say("identity", "the salt-master has no master.pem yet: one is made")
		private, public, err = newIdentity()
		if err == nil {
			_, _, err = localmaster.InstallIdentity(d.master, private, public)
		}
	}
	if err != nil {
		return fmt.Errorf("read the local master's identity: %w", err)
	}
	if _, err := saltcrypt.ParseMasterKey(private); err != nil {
		return fmt.Errorf("the local master's identity: %w", err)
	}
	say("identity", "the local master's key is the cluster's identity")
	if err := d.writeIdentity(private, public); err != nil {
		return err
	}
	if _, err := d.masterKeys().Store(private); err != nil {
		return err
	}
	advertise, err := d.advertise()
	if err != nil {
		return err
	}
	if err := d.putAside(); err != nil {
		return err
	}
	key := make([]byte, gossipKeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	m := &membership{
		ClusterID:  d.cfg.Cluster.ID,
		UUID:       newUUID(),
		Node:       d.id,
		Founder:    true,
		GossipKeys: [][]byte{key},
	}
	self := node.Entry{ID: d.id, Addr: advertise, Fingerprint: d.identity.Fingerprint()}
	if err := d.store(m, 0, []node.Entry{self}); err != nil {
		return err
	}
	say("cluster", "the cluster "+m.UUID+" is born")
	d.settled()
	return nil
}

// hasBelonged refuses to give birth where a cluster lives, or lived: a node that lost its state_dir must join again, or
// there would be two clusters of one name and identity behind the same load balancer.
func (d *Daemon) hasBelonged() error {
	markers, err := filepath.Glob(filepath.Join(d.master.PkiDir, keydir.MarkerPattern))
	if err != nil || len(markers) == 0 {
		return err
	}
	return adminapi.Errorf(adminapi.CodeRefused,
		"join one of its members; if that cluster is gone for good, remove "+markers[0]+" and bootstrap again",
		"the keys in %s belong to a cluster already, but state_dir does not know it", d.master.PkiDir)
}

// welcome is what a member gives a joiner: everything a node needs before consensus can tell it the rest.
type welcome struct {
	Version    int          `json:"version"`
	UUID       string       `json:"uuid"`
	Private    []byte       `json:"private"` // cluster.pem
	Public     []byte       `json:"public"`  // cluster.pub
	Rev        uint64       `json:"rev"`
	Generation uint64       `json:"generation,omitempty"`
	Members    []node.Entry `json:"members"`
	GossipKeys [][]byte     `json:"gossip_keys"`
}

const welcomeVersion = 1

// enter stores what a member gave us. Nothing was written before.
func (d *Daemon) enter(w welcome, say admin.Progress) error {
	if w.Version != welcomeVersion {
		return fmt.Errorf("the cluster speaks version %d of the join, this saltclusterd version %d", w.Version, welcomeVersion)
	}
	if err := d.adopt(w.Private, w.Public, say); err != nil {
		return err
	}
	if err := d.putAside(); err != nil {
		return err
	}
	m := &membership{
		ClusterID: d.cfg.Cluster.ID, UUID: w.UUID, Node: d.id, Witness: d.witness(), Generation: w.Generation, GossipKeys: w.GossipKeys,
	}
	if err := d.store(m, w.Rev, w.Members); err != nil {
		return err
	}
	d.settled()
	return nil
}

// adopt stores the cluster's identity and installs it as the local master's. A witness gets the public half only.
func (d *Daemon) adopt(private, public []byte, say admin.Progress) error {
	if d.witness() {
		_, path := clusterKeyFiles(d.cfg.Cluster.PKIDir)
		return durable.WriteFile(path, public, 0o644)
	}
	if _, err := saltcrypt.ParseMasterKey(private); err != nil {
		return fmt.Errorf("the cluster's identity: %w", err)
	}
	if err := d.writeIdentity(private, public); err != nil {
		return err
	}
	changed, backup, err := localmaster.InstallIdentity(d.master, private, public)
	if err != nil {
		return fmt.Errorf("install the cluster's identity: %w", err)
	}
	stored, err := d.masterKeys().Store(private)
	if err != nil {
		return err
	}
	switch {
	case stored:
		say("identity", "the cluster's identity is installed in the master's key store; the old one is kept there")
	case changed && backup != "":
		say("identity", "the cluster's identity is installed as master.pem; the old one is kept as "+backup)
	case changed:
		say("identity", "the cluster's identity is installed as master.pem")
	}
	return nil
}

// store makes this node a member: the roster first, for a membership without one could not find the others.
func (d *Daemon) store(m *membership, rev uint64, roster []node.Entry) error {
	book, err := peer.OpenBook(rosterPath(d.cfg.Paths.StateDir))
	if err != nil {
		return err
	}
	if err := book.Reset(); err != nil { // what an earlier cluster left
		return fmt.Errorf("empty the saved roster: %w", err)
	}
	if _, err := book.Set(rev, roster); err != nil {
		return err
	}
	if err := m.write(d.cfg.Paths.StateDir); err != nil {
		return err
	}
	if err := os.Remove(removalPath(d.cfg.Paths.StateDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *Daemon) writeIdentity(private, public []byte) error {
	privatePath, publicPath := clusterKeyFiles(d.cfg.Cluster.PKIDir)
	if err := durable.WriteFile(privatePath, private, 0o400); err != nil {
		return err
	}
	return durable.WriteFile(publicPath, public, 0o644)
}

// readPublic returns the cluster's public key as a witness keeps it.
func (d *Daemon) readPublic() (string, error) {
	_, path := clusterKeyFiles(d.cfg.Cluster.PKIDir)
	public, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return saltcrypt.CleanKey(string(public)), nil
}

// readIdentity returns the cluster's key as a member keeps it.
func (d *Daemon) readIdentity() (key *saltcrypt.MasterKey, private, public []byte, err error) {
	privatePath, publicPath := clusterKeyFiles(d.cfg.Cluster.PKIDir)
	if private, err = os.ReadFile(privatePath); err != nil {
		return nil, nil, nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	if public, err = os.ReadFile(publicPath); err != nil {
		return nil, nil, nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	if key, err = saltcrypt.ParseMasterKey(private); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", privatePath, err)
	}
	if saltcrypt.CleanKey(string(public)) != key.PublicText() {
		public = []byte(key.PublicText()) // a change of the identity was cut off between the two files
		return key, private, public, durable.WriteFile(publicPath, public, 0o644)
	}
	return key, private, public, nil
}

// newIdentity makes a key pair as salt-master makes it on its first start.
func newIdentity() (private, public []byte, err error) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, nil, err
	}
	return key.PEM(), []byte(key.PublicText()), nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562, version 4
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// joinAt asks the member at addr to take this node in.
func (d *Daemon) joinAt(ctx context.Context, addr string, right joinRight, say admin.Progress) error {
	advertise, err := d.advertise()
	if err != nil {
		return err
	}
	own, err := d.newcomer(ctx)
	if err != nil {
		return err
	}
	var accepted []byte
	if !right.keysPending {
		accepted = own.hashes()
	}
	payload, err := d.petition(accepted)
	if err != nil {
		return err
	}
	fits := own.fits
	if right.replaceKey {
		fits = nil
	}
	token, err := right.parse()
	if err != nil {
		return err
	}
	say("prove", "asking "+addr+" to be let in with "+right.name(token))
	reply, err := peer.Join(ctx, peer.JoinConfig{
		Addr: addr, Identity: d.identity, Advertise: advertise, Secret: peer.SecretBytes(right.secret.Reveal()), Token: token,
		ClusterID: d.cfg.Cluster.ID, PubFingerprint: right.fingerprint, Payload: payload, Fits: fits,
	})
	if err != nil {
		return err
	}
	w, err := parseWelcome(reply.Payload)
	if err != nil {
		return err
	}
	say("member", "let in by "+string(reply.Member.ID))
	return d.enter(w, say)
}

// bornAlready is the answer to a second birth.
func (d *Daemon) bornAlready() error {
	m, err := readMembership(d.cfg.Paths.StateDir)
	if err != nil {
		return err
	}
	if m == nil {
		return nil
	}
	return adminapi.Errorf(adminapi.CodeMember, "saltclusterctl members shows it; if it was removed a moment ago, it notices within seconds",
		"this node is already a member of the cluster %q (%s)", m.ClusterID, m.UUID)
}
