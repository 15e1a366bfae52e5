package replication

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Names of the parts that catch up, for people and for members.
const (
	partLog    = "log" // of consensus: the members and the keys
	PartKeys   = "keys"
	PartRoots  = "roots"
	PartGrains = "grains"
	PartMines  = "mines"
	PartTokens = "tokens"
	PartJobs   = "jobs"
)

const (
	// questionTimeout bounds one question: then the next member is asked.
	questionTimeout = 20 * time.Second
	// progressEvery is how often it is said how far this node is.
	progressEvery = 200 * time.Millisecond
)

// gate is closed until open is called.
type gate struct {
	once   sync.Once
	opened chan struct{}
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// CatchUp brings the stores and the given parts up to what the cluster has, as far as that can be had.
func (s *Stores) CatchUp(ctx context.Context, given ...catchup.Part) error {
	defer s.SkipCatchUp()
	runner := catchup.New(catchup.Config{
		Parts: append(given, s.pulled(PartGrains), s.pulled(PartMines), s.pulled(PartTokens), s.pulled(PartJobs)),
		Peers: s.cfg.Member.Sources, Logger: s.cfg.Logger,
	})
	s.runner.Store(runner)
	reporting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { s.reportProgress(reporting) })
	return runner.Run(ctx)
}

// SkipCatchUp says that this node has caught up, or does not have to.
func (s *Stores) SkipCatchUp() {
	s.caught.Store(true)
	for _, g := range s.held {
		g.open()
	}
}

// MarkCaughtUp says that a process before this one had caught up. What other members send is still answered "starting".
func (s *Stores) MarkCaughtUp() { s.caught.Store(true) }

// SetAnswering has questions of other members answered: the stores are open.
func (s *Stores) SetAnswering(yes bool) { s.answering.Store(yes) }

// reportProgress keeps what this node waits for up to date.
func (s *Stores) reportProgress(ctx context.Context) {
	for {
		parts := s.Progress()
		text := "catching up: " + adminapi.SyncText(parts)
		for _, p := range parts {
			if p.Open() && p.Error != "" {
				text += "; " + p.Part + ": " + p.Error
			}
		}
		s.cfg.Waiting(text)
		if !backoff.Sleep(ctx, progressEvery) {
			return
		}
	}
}

// pullable is a store that catches up with one member.
type pullable interface {
	Off() string
	Pull(ctx context.Context, ask replica.Ask, report func(done, total int)) error
	Answer(ctx context.Context, from node.ID, question []byte) ([]byte, error)
}

// pullables are the stores that catch up with one member, by part.
func (s *Stores) pullables() map[string]pullable {
	return map[string]pullable{PartGrains: s.Data, PartMines: s.Mines, PartTokens: s.Tokens, PartJobs: s.Jobs}
}

// pulled is a part that is fetched from one member. Until it is, others do not send what is new of it.
func (s *Stores) pulled(name string) catchup.Part {
	store := s.pullables()[name]
	return catchup.Part{
		Name: name, Off: store.Off(), Done: s.held[name].open,
		Pull: func(ctx context.Context, from node.ID, report func(catchup.Report)) error {
			return store.Pull(ctx, s.asker(name, from), func(done, total int) {
				report(catchup.Report{Done: int64(done), Total: int64(total)})
			})
		},
	}
}

// asker asks one member about one part.
func (s *Stores) asker(part string, from node.ID) replica.Ask {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, questionTimeout)
		defer cancel()
		answer, err := s.cfg.Member.Call(ctx, http.MethodPost, from, PathCatchUp+part, question, datacache.MaxBody)
		if peerrpc.IsNotFound(err) {
			return nil, catchup.ErrOlder
		}
		return answer, err
	}
}

// status returns how far the parts are that this node has yet to catch up with; nil when it has. Without the log it is
// not known with what.
func (s *Stores) status() []catchup.Status {
	if s.caught.Load() {
		return nil
	}
	if runner := s.runner.Load(); runner != nil {
		return runner.Status()
	}
	st := s.cfg.Log.Status()
	return []catchup.Status{{
		Name: partLog, State: catchup.StateSyncing, Since: s.cfg.Since,
		Report: catchup.Report{Done: int64(min(st.Applied, st.Commit)), Total: int64(st.Commit), From: st.Leader},
	}}
}

// Progress is how far this node is, for people; empty when it has caught up.
func (s *Stores) Progress() []adminapi.SyncPart {
	var out []adminapi.SyncPart
	for _, p := range s.status() {
		if p.Starved {
			p.Err = cmp.Or(p.Err, p.Note)
		}
		out = append(out, adminapi.SyncPart{
			Part: p.Name, State: string(p.State), Done: p.Done, Total: p.Total, Unit: cmp.Or(p.Unit, "items"),
			From: string(p.From), Since: p.Since, Error: p.Err,
		})
	}
	return out
}
