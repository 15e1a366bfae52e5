package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/keydir"
	"saltclusterd/sidecar/saltcrypt"
)

// A salt-master that has minions of its own and comes to a cluster must not lose them by it: they trust its master.pem, and the cluster
// has to know their keys as accepted, or they would be turned away as soon as it serves them. Both are looked at before anything is
// changed, here or there. A pki_dir that belonged to a cluster before is not looked at: what the cluster has deleted meanwhile is no loss.

// newcomer is what such a master brings along.
type newcomer struct {
	identity string // fingerprint of the key that its minions trust; empty: it has none
	accepted []keydir.Found
}

// newcomer looks at the local master.
func (d *Daemon) newcomer(ctx context.Context) (n newcomer, err error) {
	if d.witness() {
		return n, nil
	}
	markers, err := filepath.Glob(filepath.Join(d.master.PkiDir, keydir.MarkerPattern))
	if err != nil || len(markers) > 0 {
		return n, err
	}
	found, _, err := keydir.Collect(ctx, d.master.PkiDir, d.mirrored())
	if err != nil {
		return n, fmt.Errorf("look at the salt-master's own minion keys: %w", err)
	}
	for _, f := range found {
		if f.State == state.KeyAccepted && !f.Denied {
			n.accepted = append(n.accepted, f)
		}
	}
	if len(n.accepted) == 0 {
		return n, nil
	}
	n.identity, err = d.masterKeys().Fingerprint()
	return n, err
}

// fits refuses a cluster with another identity than minions here trust.
func (n newcomer) fits(clusterPub []byte) error {
	theirs := saltcrypt.Fingerprint(string(clusterPub))
	if n.identity == "" || n.identity == theirs {
		return nil
	}
	return fmt.Errorf("this salt-master has another master.pem (%s) than the cluster (%s), and %s here %s it: they would refuse "+
		"the cluster. Give them the cluster's key first (their minion_master.pub), or let it be replaced: join with --replace-key", n.identity, theirs,
		plural(len(n.accepted), "minion")+oneOf(len(n.accepted), " with an accepted key", " with accepted keys"), oneOf(len(n.accepted), "trusts", "trust"))
}

// keyHash is so much of a hash of an accepted key as a joiner tells of it.
const keyHash = 6

// maxKeyHashes bounds how many are told: of more keys those with the least hashes, which is as good as any choice.
const maxKeyHashes = 7000

func hashKey(id, pub string) (h [keyHash]byte) {
	sum := sha256.Sum256([]byte(id + "\x00" + saltcrypt.CleanKey(pub)))
	copy(h[:], sum[:])
	return h
}

// hashes tell a member which keys are accepted here.
func (n newcomer) hashes() []byte {
	all := make([][keyHash]byte, 0, len(n.accepted))
	for _, f := range n.accepted {
		all = append(all, hashKey(f.ID, f.Pub))
	}
	slices.SortFunc(all, func(a, b [keyHash]byte) int { return bytes.Compare(a[:], b[:]) })
	var out []byte
	for _, h := range all[:min(len(all), maxKeyHashes)] {
		out = append(out, h[:]...)
	}
	return out
}

// strangeKeys counts those of a joiner's keys that the cluster does not know as accepted.
func strangeKeys(v state.View, hashes []byte) (strange, all int) {
	if len(hashes) < keyHash {
		return 0, 0
	}
	known := map[[keyHash]byte]struct{}{}
	v.Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			known[hashKey(k.ID, k.Pub)] = struct{}{}
		}
		return true
	})
	for ; len(hashes) >= keyHash; hashes = hashes[keyHash:] {
		all++
		if _, ok := known[[keyHash]byte(hashes[:keyHash])]; !ok {
			strange++
		}
	}
	return strange, all
}
