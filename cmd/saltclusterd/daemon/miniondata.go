package daemon

import (
	"context"
	"path/filepath"
	"time"

	"saltclusterd/fsync/datacache"
	"saltclusterd/sidecar/hlc"
)

// newMinionData makes what gives every master the data of one kind that one has cached.
func (s *service) newMinionData(k datacache.Kind) (*datacache.Store, error) {
	d := s.m.d
	owner, err := d.master.Owner()
	if err != nil {
		return nil, err
	}
	return datacache.New(datacache.Config{
		Config: s.replicated("datacache"), Kind: k,
		Master: datacache.Master{
			Major: d.master.Version.Major, CacheDir: d.master.CacheDir, UID: owner.UID, GID: owner.GID,
			DataCache: d.master.Bool("minion_data_cache"), EnforceMine: d.master.Bool("enforce_mine_cache"),
			Driver:       d.master.Text("cache"),
			PillarDriver: d.master.Text("pillar.cache_driver"), PillarCache: d.master.Bool("pillar_cache"),
			Preserve: d.master.Bool("preserve_minion_cache"), Shared: d.leftToShare(s.dataDir(k)),
		},
		Keys: s.keys,
		Clock: datacache.Clock{
			Now:     func() uint64 { return uint64(s.stamps.Now()) },
			Observe: func(stamp uint64) error { return s.stamps.Observe(hlc.Timestamp(stamp)) },
		},
	})
}

// mineSettle is how long the answer to a minion waits for the other nodes to have its mine: who has heard it may ask
// any master.
const mineSettle = 500 * time.Millisecond

// dataDir is where the local master keeps what is known of minions.
func (s *service) dataDir(k datacache.Kind) string {
	bank := "minions"
	switch {
	case s.m.d.master.Version.Major < 3008:
	case k == datacache.Mine:
		bank = "mine"
	default:
		bank = "grains"
	}
	return filepath.Join(s.m.d.master.CacheDir, bank)
}

// carriedOut hears of every call that the local master has answered (sidecar.Config.Done).
func (s *service) carriedOut(id, cmd string) (settle func(context.Context)) {
	switch cmd {
	case "_pillar":
		s.data.Touched(id)
	case "_mine", "_mine_delete", "_mine_flush":
		return func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, mineSettle)
			defer cancel()
			s.mines.Spread(ctx, id)
		}
	}
	return nil
}

// takesMines says whether this node writes mines that other masters have written.
func (s *service) takesMines() bool { return s.mines.Off() == "" }

// Known implements datacache.Keys. A minion without a key counts as known while this node has not caught up, unless the
// key was deleted: what it knows less than the cluster must not remove anything.
func (k *keyView) Known(id string) bool {
	v := k.m.Consensus.View()
	if _, ok := v.Key(id); ok {
		return true
	}
	if _, denied := v.Denied(id); denied {
		return true
	}
	_, deleted := v.Tombstone(id)
	return !deleted && (!v.Initialized() || !k.m.Consensus.CaughtUp())
}

// Life implements datacache.Keys.
func (k *keyView) Life(id string) uint64 {
	key, _ := k.m.Consensus.View().Key(id)
	return key.Again
}
