package joining

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// masterKeyBits is the size of the key that a salt-master generates at its first start.
const masterKeyBits = 2048

// foundCluster makes a cluster of this node, with the local master's key as its identity.
func (j *Joiner) foundCluster(p admin.Progress) error {
	if j.cfg.Options.Cluster.Witness {
		return membership.WitnessCannot("found one")
	}
	if err := j.refuseFormerMember(); err != nil {
		return err
	}
	private, public, err := j.cfg.Master.Identity()
	if errors.Is(err, fs.ErrNotExist) {
		p("identity", "the salt-master has no master.pem yet: creating one")
		private, public, err = j.generateIdentity()
	}
	if err != nil {
		return fmt.Errorf("read the local master's identity: %w", err)
	}
	if _, err := saltcrypt.ParseMasterKey(private); err != nil {
		return fmt.Errorf("the local master's identity: %w", err)
	}
	p("identity", "the local master's key is the cluster's identity")
	if err := membership.WriteIdentity(j.cfg.Options.Cluster.PKIDir, private, public); err != nil {
		return err
	}
	if _, err := j.cfg.Master.StoreIdentity(private); err != nil {
		return err
	}
	advertise, err := j.cfg.Advertise()
	if err != nil {
		return err
	}
	key := make([]byte, membership.GossipKeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	m := &membership.Record{UUID: newUUID(), Founder: true, GossipKeys: [][]byte{key}}
	self := node.Entry{ID: j.cfg.Self, Addr: advertise, Fingerprint: j.cfg.Identity().Fingerprint()}
	if err := j.writeMembership(m, 0, []node.Entry{self}); err != nil {
		return err
	}
	p("cluster", "the cluster "+m.UUID+" is created")
	j.cfg.Joined()
	return nil
}

// refuseFormerMember refuses to found a cluster where one was. A node that lost its state_dir must join again, or there
// would be two clusters of one name and identity behind the same load balancer.
func (j *Joiner) refuseFormerMember() error {
	markers, err := j.keyMarkers()
	if err != nil || len(markers) == 0 {
		return err
	}
	return adminapi.Errorf(adminapi.CodeRefused,
		"join one of its members; if that cluster no longer exists, remove "+markers[0]+" and bootstrap again",
		"the keys in %s already belong to a cluster, but state_dir has no record of it", j.cfg.Master.PKIDir())
}

// generateIdentity makes a key pair for a master that has none.
func (j *Joiner) generateIdentity() (private, public []byte, err error) {
	key, err := saltcrypt.GenerateMasterKey(masterKeyBits)
	if err != nil {
		return nil, nil, err
	}
	private, public = key.PEM(), []byte(key.PublicText())
	_, _, err = j.cfg.Master.InstallIdentity(private, public)
	return private, public, err
}

// writeMembership completes the record and writes it with the roster, in place of what an earlier membership left.
func (j *Joiner) writeMembership(m *membership.Record, rev uint64, roster []node.Entry) error {
	o := j.cfg.Options
	m.ClusterID, m.Node, m.Witness = o.Cluster.ID, j.cfg.Self, o.Cluster.Witness
	if err := membership.PutAside(o.Paths.StateDir); err != nil {
		return err
	}
	return membership.Store(o.Paths.StateDir, m, rev, roster)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562, version 4
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
