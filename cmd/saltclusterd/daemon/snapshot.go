package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/archive"
	"saltclusterd/consensus/state"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/saltcrypt"
)

// freshView is how long a snapshot waits for what the others have decided last.
const freshView = 5 * time.Second

// SaveSnapshot implements admin.Recoverer: everything this cluster is, as this node knows it, secrets included.
func (d *Daemon) SaveSnapshot(ctx context.Context, w io.Writer) error {
	m := d.current()
	if m == nil {
		return d.errNoMember()
	}
	if err := d.notOnWitness("save a snapshot"); err != nil {
		return err
	}
	fresh, cancel := context.WithTimeout(ctx, freshView)
	defer cancel()
	if err := m.cons.Barrier(fresh); err != nil { // without a majority what this node knows is worth saving, too
		d.log.Warn("the snapshot may lack what was decided last", "err", err)
	}
	_, private, public, err := membership.ReadIdentity(d.cfg.Cluster.PKIDir)
	if err != nil {
		return err
	}
	v := m.cons.View()
	if key, err := saltcrypt.ParseMasterKey(private); err != nil || saltcrypt.Fingerprint(key.PublicText()) != v.Identity().IdentityFP {
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate identity says how far it is; take the snapshot on a node that has it", "this node has not taken the cluster's new identity yet")
	}
	var b bytes.Buffer
	if err := v.WriteSnapshot(&b); err != nil {
		return err
	}
	return archive.Write(w, d.header(m, v), archive.Content{
		Private: private, Public: public, Clock: uint64(m.svc.clock.Last()), State: b.Bytes(),
	})
}

func (d *Daemon) header(m *member, v state.View) archive.Header {
	h := archive.Header{
		ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Generation: v.Generation(), IdentityFingerprint: saltcrypt.Fingerprint(m.public),
		Node: string(d.id), Version: d.version, Created: time.Now().UTC(), Index: v.Index(), Rev: v.Rev(), Epoch: v.Epochs().Current.N,
	}
	for _, mem := range v.Members() {
		h.Members = append(h.Members, string(mem.ID))
	}
	v.Keys(func(k state.Key) bool {
		switch k.State {
		case state.KeyAccepted:
			h.Keys.Accepted++
		case state.KeyPending:
			h.Keys.Pending++
		case state.KeyRejected:
			h.Keys.Rejected++
		}
		return true
	})
	h.Keys.Denied, h.Keys.Deleted = len(v.DeniedKeys()), v.Tombstones()
	return h
}

// RestoreSnapshot implements admin.Recoverer: this node, which has none, becomes the cluster that was saved, alone.
func (d *Daemon) RestoreSnapshot(ctx context.Context, r adminapi.RestoreRequest, file io.Reader, p admin.Progress) (adminapi.Outcome, error) {
	if err := d.notOnWitness("restore a cluster"); err != nil {
		return adminapi.Outcome{}, err
	}
	header, content, err := archive.Read(file)
	if err != nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl snapshot inspect FILE checks it", "%v", err)
	}
	out, err := d.joiner.BecomeMember(ctx, r.Wait, r.Timeout, p, func() error { return d.restore(ctx, content, r.Force, p) })
	if err == nil {
		out.Next = append(out.Next, undone(header.Created, time.Now()), "on members of the former cluster that are left: saltclusterctl join "+d.cfg.PeerAdvertise(localAddrs()))
	}
	return out, err
}

// undone says what a restore has brought back that nobody wants. Who was deleted is not in the snapshot.
func undone(made, now time.Time) string {
	age := "made at a time that its clock did not know"
	if passed := now.Sub(made); passed >= 0 {
		age = passed.Round(time.Second).String() + " old"
	}
	return fmt.Sprintf("the snapshot is %s (%s): minion keys that were deleted or rejected since are accepted again; compare saltclusterctl keys list "+
		"with what you know, and delete those: saltclusterctl keys delete ID", age, made.UTC().Format(time.RFC3339))
}

// restore writes everything; the membership last, so that a restore that was cut short can be repeated.
func (d *Daemon) restore(ctx context.Context, c archive.Content, force bool, say admin.Progress) (failure error) {
	s, err := state.ReadSnapshot(bytes.NewReader(c.State))
	if err != nil {
		return fmt.Errorf("the state in the snapshot: %w", err)
	}
	v := s.View()
	switch id := v.Identity(); {
	case !v.Initialized():
		return errors.New("the snapshot holds no cluster")
	case id.ClusterID != d.cfg.Cluster.ID:
		return adminapi.Errorf(adminapi.CodeRefused, "set it, or restore another file", "the snapshot is of the cluster %q, but the option cluster_id is %q",
			id.ClusterID, d.cfg.Cluster.ID)
	}
	if key, err := saltcrypt.ParseMasterKey(c.Private); err != nil || saltcrypt.Fingerprint(key.PublicText()) != v.Identity().IdentityFP {
		return errors.New("the identity in the snapshot is not that of its state")
	}
	if !force {
		release, err := d.joiner.ClaimRestore(ctx, v)
		if err != nil {
			return err
		}
		defer func() {
			if failure != nil {
				release()
			}
		}()
	}
	addr, err := d.advertise()
	if err != nil {
		return err
	}
	if err := membership.PutAside(d.cfg.Paths.StateDir); err != nil {
		return err
	}
	if err := d.joiner.InstallIdentity(c.Private, c.Public, say); err != nil {
		return err
	}
	if err := d.restoreClock(hlc.Timestamp(c.Clock)); err != nil {
		return err
	}
	self, key := node.Entry{ID: d.id, Addr: addr, Fingerprint: d.identity.Fingerprint()}, randomBytes(membership.GossipKeySize)
	if err := consensus.Restore(membership.RaftDir(d.cfg.Paths.StateDir), s, d.recovery(self, key, "restore"), d.log); err != nil {
		return err
	}
	if err := d.rememberFormer(membership.Roster(v, d.log)); err != nil {
		return err
	}
	say("state", fmt.Sprintf("%d minion keys and the cluster's secrets are back", v.KeyCount()))
	seed := &membership.Record{ClusterID: v.Identity().ClusterID, UUID: v.Identity().UUID, Node: d.id}
	if err := d.settleAlone(seed, s.View(), self, key); err != nil {
		return err
	}
	d.settled()
	return nil
}

// restoreClock lets serials grow on from where they were, however far ahead: a minion drops a publication whose serial does not.
func (d *Daemon) restoreClock(ts hlc.Timestamp) error {
	return durable.WriteFile(clockPath(d.cfg.Paths.StateDir), []byte(strconv.FormatUint(uint64(ts), 10)+"\n"), 0o600)
}
