package sharewatch

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/share"
	"saltclusterd/sidecar/health"
)

// followEvery is how often FollowOthers asks the other members.
const followEvery = 30 * time.Second

// FollowOthers finds out, on a node that shares nothing, whether pki_dir is on a file system that other nodes share:
// two nodes would write there, each as if it were alone. It returns when ctx ends.
func (w *Watch) FollowOthers(ctx context.Context) {
	if w.share != nil {
		return
	}
	others, pki := peers{w.c.Others, w.c.Client}, w.c.PKIDir
	for {
		var found *string
		for _, id := range others.Members() {
			asking, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
			token, err := others.Token(asking, id)
			cancel()
			if err == nil && share.Here(pki, id, token) {
				reason := fmt.Sprintf("pki_dir (%s) is shared with %s, "+
					"but cluster_isolated_filesystem is True here", pki, id)
				found = &reason
			}
		}
		if found != nil && w.misplaced.Load() == nil {
			w.c.Logger.Error("shared file system", "path", pki, "reason", *found)
		}
		w.misplaced.Store(found)
		if !backoff.Sleep(ctx, followEvery) {
			return
		}
	}
}

// checkIsolated is Check of a node with a file system of its own.
func (w *Watch) checkIsolated() health.Result {
	if reason := w.misplaced.Load(); reason != nil {
		return health.Result{
			Level: health.Fail, Reason: *reason,
			Hint: "set it to False here, or give this master a pki_dir of its own: saltclusterctl migrate does that",
		}
	}
	return health.Result{Level: health.OK}
}
