package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/lifecycle"
)

// listParts lists all parts of a service in their order.
func (s *service) listParts() []lifecycle.Listed {
	return []lifecycle.Listed{
		{Name: "shared file system", Part: s.share, Phase: lifecycle.Exclusive},
		{Name: "the master's files", Part: &lifecycle.Funcs{OnOpen: s.prepareFiles}, Phase: lifecycle.Exclusive},
		{Name: "key directory", Part: s.dir, Phase: lifecycle.Exclusive},
		{Name: "clock of serials", Part: &lifecycle.Background{Run: s.keepSerials}, Phase: lifecycle.Exclusive},
		{Name: "missed jobs", Part: s.jobs.Missed, Phase: lifecycle.Exclusive}, // before a job is seen
		{Name: "requests to the master", Part: s.master.Requests},
		{Name: "event bus", Part: s.master.Bus},
		{Name: "mirror of events", Part: s.mirror, Phase: lifecycle.Exclusive},
		{Name: "returns", Part: s.native.Returns, Phase: lifecycle.Exclusive},
		{Name: "events of minions", Part: s.native.Events},
		{Name: "sign-in", Part: s.signin},
		{Name: "fan-out", Part: s.hub, Phase: lifecycle.Outgoing},
		{Name: "minion data", Part: s.stores.Data, Phase: lifecycle.Exclusive},
		{Name: "mines", Part: s.stores.Mines, Phase: lifecycle.Exclusive},
		{Name: "tokens", Part: s.stores.Tokens, Phase: lifecycle.Exclusive},
		{Name: "roots", Part: s.roots, Phase: lifecycle.Exclusive},
		{Name: "jobs", Part: s.stores.Jobs, Phase: lifecycle.Exclusive},
		{Name: "publications of the master", Part: s.master.Publications, Phase: lifecycle.Incoming},
		// Duties end before the subscription: its last message may wait for a sign-in.
		{Name: "duties", Part: &lifecycle.Funcs{OnClose: func() error { s.cancel(); return nil }}},
		{Name: "traces", Part: s.trace},
		{Name: "files", Part: &lifecycle.Funcs{OnClose: s.native.Files.Close}},
		{Name: "requests of minions", Part: &lifecycle.Funcs{OnClose: s.proxy.Close}},
		{Name: "publish port", Part: s.ports.Publish, Phase: lifecycle.Outgoing},
		{Name: "request port", Part: s.ports.Requests, Phase: lifecycle.Incoming},
	}
}

// isEdge says whether minions connect to a part.
func (s *service) isEdge(p lifecycle.Listed) bool {
	return p.Part == lifecycle.Part(s.ports.Publish) || p.Part == lifecycle.Part(s.ports.Requests)
}

// prepareFiles finds out what has to be known of the master's files before anything is written.
func (s *service) prepareFiles(ctx context.Context) error {
	s.wg.Go(s.share.FindMisplaced)
	s.stores.MakeCacheDir()
	s.master.Umask.Ask(ctx)
	return nil
}

// duties lists what the membership does in the background.
func (m *member) duties() lifecycle.Duties {
	const open = lifecycle.ConsensusOpen
	return lifecycle.Duties{
		{Name: "follow consensus", InColdStart: open, InTakeover: open, Run: m.Follow},
		{Name: "routes", InColdStart: open, InTakeover: open, Run: func(ctx context.Context) {
			if !m.took.IsZero() {
				m.AwaitPeers(ctx)
			}
			m.FollowRoutes(ctx)
		}},
		{Name: "standing", InColdStart: open, InTakeover: open, Run: m.standing.Run},
		{Name: "former members", InColdStart: open, InTakeover: open, Run: m.former.Run},
		{Name: "contact", InColdStart: open, InTakeover: open, Run: func(ctx context.Context) {
			m.d.contact.Keep(ctx, m.Consensus.CaughtUp)
		}},
		{Name: "clocks", InColdStart: open, InTakeover: open, Run: m.clocks.Run},
		{Name: "certificate", InColdStart: open, InTakeover: open, Run: m.certificates.Run},
		{Name: "identity", InColdStart: open, InTakeover: open, Run: m.identity.Run},
	}
}

// duties lists what the service for minions does in the background.
func (s *service) duties() lifecycle.Duties {
	const (
		parts, edges = lifecycle.PartsOpen, lifecycle.EdgesOpen  // of a cold start
		taken, disks = lifecycle.EdgesTaken, lifecycle.DisksFree // of a takeover
	)
	return lifecycle.Duties{
		{Name: "sign-in at the master", InColdStart: parts, InTakeover: taken, Run: s.master.KeepSignedIn},
		{Name: "master's version", InColdStart: parts, InTakeover: taken, Run: s.master.Watch.FollowVersion},
		{Name: "master's key store", InColdStart: parts, InTakeover: taken, Run: s.master.Watch.FollowKeyStore},
		{Name: "epochs and links", InColdStart: parts, InTakeover: taken, Run: s.rotation.Follow},
		{Name: "protocols of minions", InColdStart: parts, InTakeover: taken, Run: s.minions.KeepProtocols},
		{Name: "master's umask", InColdStart: parts, InTakeover: disks, Run: s.master.Umask.Follow},
		{Name: "running jobs", InColdStart: parts, InTakeover: disks, Run: func(ctx context.Context) {
			s.running.Follow(ctx, s.share.Hangs)
		}},
		{Name: "limit of serving alone", InColdStart: parts, InTakeover: disks, Run: s.alone.KeepLimit},
		{Name: "way back to the cluster", InColdStart: parts, InTakeover: disks, Run: s.alone.FindCluster},
		{Name: "end of an edge", InColdStart: edges, InTakeover: taken, Run: s.watchPorts},
		{Name: "addresses of this host", InColdStart: edges, InTakeover: taken, Run: s.ports.FollowAddresses},
		{Name: "drain", InColdStart: edges, InTakeover: disks, Run: s.drain.Follow},
		{Name: "presence", InColdStart: edges, InTakeover: disks, Run: s.minions.KeepPresence},
		{Name: "pki_dir that others share", InColdStart: edges, InTakeover: disks, Run: s.share.FollowOthers},
	}
}

// watchPorts ends the daemon when an edge has ended on its own.
func (s *service) watchPorts(ctx context.Context) {
	if err := s.ports.AwaitEnd(ctx); err != nil {
		s.m.Fail(err)
	}
}

// lead runs the leader's duties until ctx ends (consensus.Config.Lead).
func (m *member) lead(ctx context.Context) {
	lifecycle.RunAll(ctx, m.secrets.KeepAES, m.secrets.KeepGossipKey, m.secrets.KeepSeed, m.KeepLevel, m.role.lead)
}
