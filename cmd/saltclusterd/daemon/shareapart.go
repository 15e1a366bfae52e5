package daemon

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/share"
	"saltclusterd/sidecar/health"
)

// apartEvery is how often a node that shares nothing looks whether it does so after all.
const apartEvery = 30 * time.Second

// watchApart finds out whether pki_dir is on a file system that other nodes say they share: two of us would write there, each as if
// it were alone.
func (s *service) watchApart(ctx context.Context) {
	peers, pki := sharePeers{s.m}, s.m.d.master.PkiDir
	for {
		var found *string
		for _, id := range peers.Members() {
			asking, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
			token, err := peers.Token(asking, id)
			cancel()
			if err == nil && share.Here(pki, id, token) {
				reason := fmt.Sprintf("pki_dir (%s) is the one that %s shares, but cluster_isolated_filesystem is True here", pki, id)
				found = &reason
			}
		}
		if found != nil && s.misplaced.Load() == nil {
			s.m.log.Error("shared file system", "path", pki, "reason", *found)
		}
		s.misplaced.Store(found)
		if !backoff.Sleep(ctx, apartEvery) {
			return
		}
	}
}

// checkApart is checkShare for a node with a file system of its own.
func (s *service) checkApart() health.Result {
	if reason := s.misplaced.Load(); reason != nil {
		return health.Result{
			Level: health.Fail, Reason: *reason,
			Hint: "set it to False here, or give this master a pki_dir of its own: saltclusterctl migrate does that",
		}
	}
	return fine
}
