package daemon

import (
	"context"
	"os"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Checkup implements admin.Examiner.
func (d *Daemon) Checkup(ctx context.Context) (adminapi.Checkup, error) {
	out := adminapi.Checkup{Node: string(d.id), PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid(), Peers: []adminapi.CheckupPeer{}}
	if c := d.master; c != nil {
		out.Master = &adminapi.CheckupMaster{
			Version: c.Version.String(), User: c.User, PKIDir: c.PkiDir, CacheDir: c.CacheDir, SockDir: c.SockDir,
			Interface: c.Interface, PublishPort: c.PublishPort, RetPort: c.RetPort,
		}
	}
	if m := d.current(); m != nil {
		if m.svc != nil && out.Master != nil {
			out.Master.Roots = m.svc.roots.Dirs()
		}
		out.Peers = m.examinePeers(ctx)
	}
	return out, nil
}

// examinePeers asks every other member for its time.
func (m *member) examinePeers(ctx context.Context) []adminapi.CheckupPeer {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	out := []adminapi.CheckupPeer{}
	for _, mem := range m.cons.View().Members() {
		if mem.ID != m.d.id {
			out = append(out, adminapi.CheckupPeer{Node: string(mem.ID), Address: mem.Addr})
		}
	}
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { m.examinePeer(ctx, &out[i]) })
	}
	wg.Wait()
	return out
}

// examinePeer asks twice: the first question may have to make the connection.
func (m *member) examinePeer(ctx context.Context, p *adminapi.CheckupPeer) {
	for range 2 {
		begun := time.Now()
		s, err := m.nodeStats(ctx, node.ID(p.Node))
		if err != nil {
			p.Error = peerrpc.Reason(err)
			return
		}
		took := time.Since(begun)
		p.RoundTrip = took.Seconds()
		if !s.Now.IsZero() {
			skew := s.Now.Sub(begun.Add(took / 2)).Seconds()
			p.Skew = &skew
		}
	}
}
