package joining

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

// A salt-master with minions of its own must not lose them when it joins. They trust its master.pem, and the cluster
// must have accepted their keys, or it turns them away as soon as it serves them. Both are checked before anything
// changes on either side. A pki_dir that belonged to a cluster before is not checked, because what the cluster has
// deleted since is not lost.

// localMinions are the minions that the local master has accepted.
type localMinions struct {
	identity string // fingerprint of the key that they trust; empty: the master has none
	accepted []keydir.Found
}

// readLocalMinions reads the key directory of the local master. A witness has none.
func (j *Joiner) readLocalMinions(ctx context.Context) (l localMinions, err error) {
	if j.cfg.Options.Cluster.Witness {
		return l, nil
	}
	markers, err := j.keyMarkers()
	if err != nil || len(markers) > 0 {
		return l, err
	}
	found, _, err := keydir.Collect(ctx, j.cfg.Master.PKIDir(), j.cfg.Master.KeyStore())
	if err != nil {
		return l, fmt.Errorf("read the salt-master's own minion keys: %w", err)
	}
	for _, f := range found {
		if f.State == state.KeyAccepted && !f.Denied {
			l.accepted = append(l.accepted, f)
		}
	}
	if len(l.accepted) == 0 {
		return l, nil
	}
	l.identity, err = j.cfg.Master.Fingerprint()
	return l, err
}

// keyMarkers lists the files by which a cluster marks the key directory of the local master as its own.
func (j *Joiner) keyMarkers() ([]string, error) {
	return filepath.Glob(filepath.Join(j.cfg.Master.PKIDir(), keydir.MarkerPattern))
}

// checkIdentity refuses a cluster whose key the minions do not trust.
func (l localMinions) checkIdentity(clusterPub []byte) error {
	theirs := saltcrypt.Fingerprint(string(clusterPub))
	if l.identity == "" || l.identity == theirs {
		return nil
	}
	minions, trust := "1 minion with an accepted key", "trusts"
	if n := len(l.accepted); n != 1 {
		minions, trust = fmt.Sprintf("%d minions with accepted keys", n), "trust"
	}
	return fmt.Errorf("this salt-master has another master.pem (%s) than the cluster (%s), and %s here %s it, "+
		"so they would refuse the cluster. Give them the cluster's key first (their minion_master.pub), "+
		"or join with --replace-key",
		l.identity, theirs, minions, trust)
}

// keyHashSize is the length in bytes of the hash of an accepted key that a joining node sends.
const keyHashSize = 6

// maxKeyHashes limits the hashes that are sent. Of more keys those with the smallest hashes are sent, which is a random
// choice.
const maxKeyHashes = 7000

type keyHash [keyHashSize]byte

func hashKey(id, pub string) keyHash {
	sum := sha256.Sum256([]byte(id + "\x00" + saltcrypt.CleanKey(pub)))
	return keyHash(sum[:keyHashSize])
}

// hashes encodes the accepted keys for a member.
func (l localMinions) hashes() []byte {
	all := make([]keyHash, 0, len(l.accepted))
	for _, f := range l.accepted {
		all = append(all, hashKey(f.ID, f.Pub))
	}
	slices.SortFunc(all, func(a, b keyHash) int { return bytes.Compare(a[:], b[:]) })
	var out []byte
	for _, h := range all[:min(len(all), maxKeyHashes)] {
		out = append(out, h[:]...)
	}
	return out
}

// countUnknownKeys counts the keys of a joining node that the cluster has not accepted.
func countUnknownKeys(v state.View, hashes []byte) (unknown, all int) {
	if len(hashes) < keyHashSize {
		return 0, 0
	}
	known := map[keyHash]struct{}{}
	v.Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			known[hashKey(k.ID, k.Pub)] = struct{}{}
		}
		return true
	})
	for ; len(hashes) >= keyHashSize; hashes = hashes[keyHashSize:] {
		all++
		if _, ok := known[keyHash(hashes[:keyHashSize])]; !ok {
			unknown++
		}
	}
	return unknown, all
}
