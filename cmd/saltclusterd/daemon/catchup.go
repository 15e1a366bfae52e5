package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
)

// Names of the parts that catch up, for people and for peers.
const (
	partLog    = "log" // of consensus: who belongs, which keys there are
	partKeys   = "keys"
	partRoots  = "roots"
	partGrains = "grains"
	partMines  = "mines"
	partTokens = "tokens"
	partJobs   = "jobs"
)

// pathCatchup is where a node that catches up asks others, followed by the name of the part.
const pathCatchup = "/v1/catchup/"

const (
	// maxQuestion bounds what a node that catches up says of what it has.
	maxQuestion = 8 << 20
	// maxQuestions is how many questions are answered at a time.
	maxQuestions = 8
	// maxWait bounds one question: then the next peer is asked.
	maxWait = 20 * time.Second
	// catchupLook is how often the parts that help themselves are looked at.
	catchupLook = 20 * time.Millisecond
)

// latecomer is what of a service brings it up to date before it serves minions.
type latecomer struct {
	held   map[string]chan struct{} // closed when a part is up to date, or was given up
	once   map[string]*sync.Once
	runner atomic.Pointer[catchup.Runner] // nil: the parts do not catch up yet, or never
	caught atomic.Bool                    // they have
	open   atomic.Bool                    // the parts are open: others may be answered
	busy   chan struct{}                  // bounds the questions of others
}

func newLatecomer() *latecomer {
	l := &latecomer{held: map[string]chan struct{}{}, once: map[string]*sync.Once{},
		busy: make(chan struct{}, maxQuestions)}
	for _, name := range []string{partGrains, partMines, partTokens, partJobs} {
		l.held[name], l.once[name] = make(chan struct{}), &sync.Once{}
	}
	return l
}

// release lets the peers tell a part what is new.
func (l *latecomer) release(name string) {
	if once := l.once[name]; once != nil {
		once.Do(func() { close(l.held[name]) })
	}
}

// releaseAll says that this node has caught up, or does not have to.
func (l *latecomer) releaseAll() {
	l.caught.Store(true)
	for name := range l.held {
		l.release(name)
	}
}

func (l *latecomer) released(name string) bool {
	select {
	case <-l.held[name]:
		return true
	default:
		return false
	}
}

// catchUp brings all parts up to what the cluster has, as far as that can be had.
func (s *service) catchUp(ctx context.Context) error {
	defer s.late.releaseAll()
	if s.alone.Serving() {
		return nil
	}
	runner := s.newRunner()
	s.late.runner.Store(runner)
	say, stop := context.WithCancel(ctx)
	defer stop()
	s.wg.Go(func() { s.sayProgress(say) })
	return runner.Run(ctx)
}

// sayProgress keeps what this node waits for up to date, for health, status and whoever has called join.
func (s *service) sayProgress(ctx context.Context) {
	for {
		parts := s.m.syncReport()
		text := "catching up: " + adminapi.SyncText(parts)
		for _, p := range parts {
			if p.Open() && p.Error != "" {
				text += "; " + p.Part + ": " + p.Error
			}
		}
		s.step.Store(text)
		if !backoff.Sleep(ctx, progressEvery) {
			return
		}
	}
}

// progressEvery is how often it is said how far this node is.
const progressEvery = 200 * time.Millisecond

func (s *service) newRunner() *catchup.Runner {
	parts := []catchup.Part{
		{Name: partKeys, Await: s.awaitKeys, Needed: true},
		{Name: partRoots, Await: s.roots.Await, Off: s.roots.Off()},
		s.pulled(partGrains), s.pulled(partMines), s.pulled(partTokens), s.pulled(partJobs),
	}
	return catchup.New(catchup.Config{Parts: parts, Peers: s.m.Sources, Logger: s.m.log})
}

// pullable is a store that catches up with one peer.
type pullable interface {
	Off() string
	Pull(ctx context.Context, ask replica.Ask, tell func(done, total int)) error
	Answer(ctx context.Context, from node.ID, question []byte) ([]byte, error)
}

// pullables are the stores that catch up with one peer, by part.
func (s *service) pullables() map[string]pullable {
	return map[string]pullable{partGrains: s.data, partMines: s.mines, partTokens: s.tokens, partJobs: s.cache}
}

// pulled is a part that is fetched from one peer. Until it is, others do not send what is new of it.
func (s *service) pulled(name string) catchup.Part {
	store := s.pullables()[name]
	return catchup.Part{
		Name: name, Off: store.Off(), Done: func() { s.late.release(name) },
		Pull: func(ctx context.Context, from node.ID, tell func(catchup.Report)) error {
			return store.Pull(ctx, s.asker(name, from), func(done, total int) {
				tell(catchup.Report{Done: int64(done), Total: int64(total)})
			})
		},
	}
}

// asker asks one peer about one part.
func (s *service) asker(part string, from node.ID) replica.Ask {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		answer, err := s.m.Call(ctx, http.MethodPost, from, pathCatchup+part, question, datacache.MaxBody)
		if peerrpc.IsNotFound(err) {
			return nil, catchup.ErrOlder
		}
		return answer, err
	}
}

// awaitKeys waits until the key files are as the cluster has decided.
func (s *service) awaitKeys(ctx context.Context, tell func(catchup.Report)) error {
	rev := s.m.Consensus.View().Rev()
	for {
		done, total := s.dir.Writing()
		tell(catchup.Report{Done: int64(done), Total: int64(total), Note: "writing the key files"})
		look, cancel := context.WithTimeout(ctx, catchupLook)
		err := s.dir.WaitSynced(look, rev)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// handleCatchup answers a node that catches up.
func (m *member) handleCatchup(w http.ResponseWriter, r *http.Request) {
	s := m.svc
	select {
	case s.late.busy <- struct{}{}:
		defer func() { <-s.late.busy }()
	case <-r.Context().Done():
		return
	}
	from, ok := peer.FromContext(r.Context())
	if !ok {
		http.Error(w, "not a member", http.StatusForbidden)
		return
	}
	question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		http.Error(w, "question too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !s.late.open.Load() {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	store, ok := s.pullables()[r.PathValue("part")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer, err := store.Answer(r.Context(), from, question)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(answer)
}

// whenCaughtUp answers peers "starting" until this node has a part, lest they send what it is fetching.
func (s *service) whenCaughtUp(part string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.late.released(part) || !s.late.open.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// syncing tells how far the parts are that this node has yet to catch up with; nil when it has. Without the log it does
// not know with what.
func (m *member) syncing() []catchup.Status {
	if m.svc == nil || m.svc.late.caught.Load() {
		return nil
	}
	if runner := m.svc.late.runner.Load(); runner != nil {
		return runner.Status()
	}
	st := m.Consensus.Status()
	return []catchup.Status{{
		Name: partLog, State: catchup.StateSyncing, Since: m.Since,
		Report: catchup.Report{Done: int64(min(st.Applied, st.Commit)), Total: int64(st.Commit), From: st.Leader},
	}}
}

// syncReport is how far this node is, for people.
func (m *member) syncReport() []adminapi.SyncPart {
	var out []adminapi.SyncPart
	for _, p := range m.syncing() {
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

// makeCache makes the master's cachedir on a node whose master has never run: what the others know has to go somewhere.
func (s *service) makeCache() {
	dir := s.m.d.master.CacheDir
	if exists(dir) {
		return
	}
	owner, err := s.m.d.master.Owner()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, owner.UID, owner.GID)
	}
	if err != nil {
		s.m.log.Warn("the master's cachedir is not made", "path", dir, "err", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
