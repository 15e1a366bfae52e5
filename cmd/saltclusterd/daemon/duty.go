package daemon

import (
	"context"
	"sync"
)

// stage is a point in the life of a process at which duties start. A cold start passes consensusOpen, partsOpen and
// edgesOpen; a process that takes over from another one passes edgesTaken, consensusOpen and disksFree.
type stage int

const (
	consensusOpen stage = iota // consensus and gossip are open
	partsOpen                  // everything but the edges is open, on disk as well
	edgesOpen                  // minions can connect
	edgesTaken                 // the connections of the old process are served
	disksFree                  // the old process has closed what only one process can have open
)

// duty is a background task that runs until its context ends.
type duty struct {
	name      string
	coldStart stage
	takeover  stage
	run       func(context.Context)
}

// duties lists what the membership does in the background.
func (m *member) duties() []duty {
	return []duty{
		{"follow consensus", consensusOpen, consensusOpen, m.Follow},
		{"routes", consensusOpen, consensusOpen, m.followRoutes},
		{"standing", consensusOpen, consensusOpen, m.standing.Run},
		{"former members", consensusOpen, consensusOpen, m.former.Run},
		{"contact", consensusOpen, consensusOpen, m.keepContact},
		{"clocks", consensusOpen, consensusOpen, m.clocks.Run},
		{"certificate", consensusOpen, consensusOpen, m.certificates.Run},
		{"identity", consensusOpen, consensusOpen, m.identity.Run},
	}
}

// duties lists what the service for minions does in the background.
func (s *service) duties() []duty {
	return []duty{
		{"learn the master's keys", partsOpen, edgesTaken, s.keepLearning},
		{"master's version", partsOpen, edgesTaken, s.watch.FollowVersion},
		{"master's key store", partsOpen, edgesTaken, s.watch.FollowKeyStore},
		{"epochs and links", partsOpen, edgesTaken, s.followEpochs},
		{"protocols of minions", partsOpen, edgesTaken, s.m.minions.KeepProtocols},
		{"master's umask", partsOpen, disksFree, s.umask.Follow},
		{"running jobs", partsOpen, disksFree, func(ctx context.Context) { s.published.Follow(ctx, s.share.Hangs) }},
		{"limit of serving alone", partsOpen, disksFree, s.alone.KeepLimit},
		{"way back to the cluster", partsOpen, disksFree, s.alone.FindCluster},
		{"end of an edge", edgesOpen, edgesTaken, s.watchEdges},
		{"addresses of this host", edgesOpen, edgesTaken, s.followAddresses},
		{"drain", edgesOpen, disksFree, s.drain.Follow},
		{"presence", edgesOpen, disksFree, s.m.minions.KeepPresence},
		{"pki_dir that others share", edgesOpen, disksFree, s.share.FollowOthers},
	}
}

// lead runs the leader's duties until ctx ends (consensus.Config.Lead).
func (m *member) lead(ctx context.Context) {
	var wg sync.WaitGroup
	for _, run := range []func(context.Context){m.secrets.KeepAES, m.secrets.KeepGossipKey, m.secrets.KeepSeed,
		m.KeepLevel, m.resignWhenShareHangs} {
		wg.Go(func() { run(ctx) })
	}
	wg.Wait()
}

// startDuties starts the duties of a stage in wg. isTakeover: this process takes over from another one.
func startDuties(ctx context.Context, wg *sync.WaitGroup, duties []duty, at stage, isTakeover bool) {
	for _, d := range duties {
		starts := d.coldStart
		if isTakeover {
			starts = d.takeover
		}
		if starts == at {
			wg.Go(func() { d.run(ctx) })
		}
	}
}
