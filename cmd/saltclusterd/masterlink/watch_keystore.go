package masterlink

import (
	"context"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
)

// configEvery is how often the master's configuration is read for the place of its keys.
const configEvery = 3 * time.Second

// FollowKeyStore reads the master's configuration at intervals. When the master has its keys in another place, or is
// about to, another process of this program takes over, which uses that place. It returns then, or when ctx ends.
func (w *Watch) FollowKeyStore(ctx context.Context) {
	seen, pause := 0, backoff.Backoff{Min: upgradeRetry, Max: maxUpgradeRetry}
	before := w.c.Master.Text("keys.cache_driver")
	for backoff.Poll(ctx, configEvery) {
		c, err := localmaster.LoadConfig(w.c.Master.Path, w.c.Master.Version)
		if err != nil || sameStore(configuredStore(c), configuredStore(w.c.Master)) && c.Text("keys.cache_driver") == before {
			seen = 0
			continue
		}
		if seen++; seen < 2 { // a file may have been half written
			continue
		}
		w.c.Logger.Warn("the salt-master is configured for another key store", "reason", c.Text("keys.cache_driver"),
			"before", before)
		err = w.c.Upgrade(ctx, func(step, message string, _ ...int) {
			w.c.Logger.Debug("restarted for the salt-master's key store", "step", step, "reason", message)
		})
		if err == nil {
			return
		}
		w.c.Logger.Warn("not restarted for the salt-master's key store", "err", err)
		if !pause.Wait(ctx) {
			return
		}
	}
}

func sameStore(a, b *mmapkeys.Geometry) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
