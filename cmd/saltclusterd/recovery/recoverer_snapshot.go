package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/archive"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/saltcrypt"
)

// SaveSnapshot implements admin.Recoverer: everything that this cluster is, as this node has it, with its secrets.
func (r *Recoverer) SaveSnapshot(ctx context.Context, w io.Writer) error {
	m, err := r.cfg.Running()
	if err != nil {
		return err
	}
	if err := r.refuseWitness("save a snapshot"); err != nil {
		return err
	}
	fresh, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	if err := m.Log.Barrier(fresh); err != nil { // what this node has is worth saving without a majority as well
		r.cfg.Logger.Warn("the snapshot may lack the latest decisions", "err", err)
	}
	_, private, public, err := membership.ReadIdentity(r.cfg.Options.Cluster.PKIDir)
	if err != nil {
		return err
	}
	v := m.Log.View()
	if !isIdentity(private, v) {
		return adminapi.Errorf(adminapi.CodeRefused,
			"saltclusterctl rotate identity shows its progress; take the snapshot on a node that has the new identity",
			"this node has not taken the cluster's new identity yet")
	}
	var b bytes.Buffer
	if err := v.WriteSnapshot(&b); err != nil {
		return err
	}
	return archive.Write(w, r.header(m, v), archive.Content{
		Private: private, Public: public, Clock: uint64(m.Clock()), State: b.Bytes(),
	})
}

// isIdentity says whether a private key is that of the cluster.
func isIdentity(private []byte, v state.View) bool {
	key, err := saltcrypt.ParseMasterKey(private)
	return err == nil && saltcrypt.Fingerprint(key.PublicText()) == v.Identity().IdentityFP
}

func (r *Recoverer) header(m Membership, v state.View) archive.Header {
	h := archive.Header{
		ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Generation: v.Generation(),
		IdentityFingerprint: saltcrypt.Fingerprint(m.Public), Node: string(r.cfg.Self), Version: r.cfg.Version,
		Created: time.Now().UTC(), Index: v.Index(), Rev: v.Rev(), Epoch: v.Epochs().Current.N,
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

// RestoreSnapshot implements admin.Recoverer: a node without a cluster becomes the one that was saved, alone.
func (r *Recoverer) RestoreSnapshot(
	ctx context.Context, q adminapi.RestoreRequest, file io.Reader, p admin.Progress,
) (adminapi.Outcome, error) {
	if err := r.refuseWitness("restore a cluster"); err != nil {
		return adminapi.Outcome{}, err
	}
	header, content, err := archive.Read(file)
	if err != nil {
		return adminapi.Outcome{},
			adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl snapshot inspect FILE checks it", "%v", err)
	}
	out, err := r.cfg.Joiner.BecomeMember(ctx, q.Wait, q.Timeout, p, func() error {
		return r.restore(ctx, content, q.Force, p)
	})
	if err == nil {
		out.Next = append(out.Next, describeUndone(header.Created, time.Now()),
			"on remaining members of the former cluster: saltclusterctl join "+
				r.cfg.Options.PeerAdvertise(r.cfg.LocalAddrs()))
	}
	return out, err
}

// describeUndone says which decisions a restore has undone. A snapshot lists neither the keys that were deleted since
// nor the secrets that were replaced.
func describeUndone(made, now time.Time) string {
	age := "made at an unknown time"
	if passed := now.Sub(made); passed >= 0 {
		age = passed.Round(time.Second).String() + " old"
	}
	return fmt.Sprintf("the snapshot is %s (%s): minion keys that were deleted or rejected since are accepted again; "+
		"compare saltclusterctl keys list with what you know, and delete those: saltclusterctl keys delete ID; "+
		"if the cluster secret was replaced since, the former one is valid again: saltclusterctl rotate secret; "+
		"earlier join tokens are invalid",
		age, made.UTC().Format(time.RFC3339))
}

// restore writes the files of a membership. The membership itself is the last one, so that a restore that was
// interrupted can be repeated.
func (r *Recoverer) restore(ctx context.Context, c archive.Content, force bool, p admin.Progress) (failure error) {
	s, err := state.ReadSnapshot(bytes.NewReader(c.State))
	if err != nil {
		return fmt.Errorf("the state in the snapshot: %w", err)
	}
	v := s.View()
	if err := r.checkSnapshot(v, c.Private); err != nil {
		return err
	}
	if !force {
		release, err := r.cfg.Joiner.ClaimRestore(ctx, v)
		if err != nil {
			return err
		}
		defer func() {
			if failure != nil {
				release()
			}
		}()
	}
	addr, err := r.cfg.Advertise()
	if err != nil {
		return err
	}
	dir := r.cfg.Options.Paths.StateDir
	if err := membership.PutAside(dir); err != nil {
		return err
	}
	if err := r.cfg.Joiner.InstallIdentity(c.Private, c.Public, p); err != nil {
		return err
	}
	// Serials have to grow from where they were, because a minion drops a publication whose serial does not.
	if err := hlc.WriteFloor(r.cfg.ClockPath, hlc.Timestamp(c.Clock)); err != nil {
		return err
	}
	self, key := node.Entry{ID: r.cfg.Self, Addr: addr, Fingerprint: r.cfg.Identity().Fingerprint()}, newGossipKey()
	err = consensus.Restore(membership.RaftDir(dir), s, r.describeSurvivor(self, key, "restore"), r.cfg.Logger)
	if err != nil {
		return err
	}
	if err := addFormer(dir, r.cfg.Self, membership.Roster(v, r.cfg.Logger), r.cfg.Logger); err != nil {
		return err
	}
	p("state", fmt.Sprintf("%d minion keys and the cluster's secrets were restored", v.KeyCount()))
	rec := &membership.Record{ClusterID: v.Identity().ClusterID, UUID: v.Identity().UUID, Node: r.cfg.Self}
	if err := r.storeMembership(rec, s.View(), self, key); err != nil {
		return err
	}
	r.cfg.Joined()
	return nil
}

// checkSnapshot refuses a snapshot of no cluster, of another one, or with another identity.
func (r *Recoverer) checkSnapshot(v state.View, private []byte) error {
	switch id := v.Identity(); {
	case !v.Initialized():
		return errors.New("the snapshot holds no cluster")
	case id.ClusterID != r.cfg.Options.Cluster.ID:
		return adminapi.Errorf(adminapi.CodeRefused, "set it, or restore another file",
			"the snapshot is of the cluster %q, but the option cluster_id is %q", id.ClusterID, r.cfg.Options.Cluster.ID)
	case !isIdentity(private, v):
		return errors.New("the identity in the snapshot is not that of its state")
	}
	return nil
}
