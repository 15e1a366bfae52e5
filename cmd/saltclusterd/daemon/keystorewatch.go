package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"saltclusterd/backoff"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// watchKeyStore reads the master's configuration again and again: when the master is about to have its keys in another place, or
// has, another process of this very program takes over, which knows that place.
func (s *service) watchKeyStore(ctx context.Context) {
	d := s.m.d
	seen, pause := 0, renewAgain
	for backoff.Sleep(ctx, configEvery) {
		c, err := localmaster.LoadConfig(d.master.Path, d.master.Version)
		if err != nil || sameStore(keyStore(c), keyStore(d.master)) && c.Text("keys.cache_driver") == d.master.Text("keys.cache_driver") {
			seen = 0
			continue
		}
		if seen++; seen < 2 { // a file may have been half written
			continue
		}
		s.m.log.Warn("the salt-master is configured for another key store", "reason", c.Text("keys.cache_driver"),
			"before", d.master.Text("keys.cache_driver"))
		_, err = d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(step, message string, _ ...int) {
			s.m.log.Debug("renewed for the salt-master's key store", "op", step, "reason", message)
		})
		if err == nil {
			return
		}
		s.m.log.Warn("not renewed for the salt-master's key store", "err", err)
		if !backoff.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, renewMost)
	}
}

func sameStore(a, b *mmapkeys.Geometry) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// keyStoreLine describes the master's own key store in the status; nil when it has none.
func (s *service) keyStoreLine() *adminapi.KeyStore {
	if s.m.d.mirrored() == nil {
		return nil
	}
	out := &adminapi.KeyStore{Driver: storeDriver, Busy: true}
	if st := s.dir.Store(); st != nil {
		out.Keys, out.Fill, out.Lacking, out.Busy, out.Error = st.Keys, st.Fill, st.Lacking, st.Strange, st.Err
	}
	return out
}

// checkKeyStore is about the master's own key store.
func (s *service) checkKeyStore(context.Context) health.Result {
	if s.m.d.mirrored() == nil {
		return fine
	}
	st := s.dir.Store()
	if st == nil {
		st = &keydir.StoreStatus{}
	}
	files := filepath.Join(s.m.d.master.PkiDir, mmapkeys.Keys) + "*"
	switch {
	case st.Err != "":
		return health.Result{
			Level: health.Fail, Reason: "minion keys are not kept in step: " + st.Err,
			Hint: "if its size was changed: stop the salt-master, move " + files + " away and start it; the keys come back",
		}
	case st.Lacking > 0:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("the salt-master's key store has no room for %d minion keys, or their ids", st.Lacking),
			Hint: "raise mmap_key_size or mmap_key_id_size; then, with the salt-master stopped, move " + files + " away",
		}
	case st.Fill > storeNearlyFull:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("the salt-master's key store is %.0f %% full", 100*st.Fill),
			Hint: "raise mmap_key_size; then, with the salt-master stopped, move " + files + " away",
		}
	}
	return fine
}
