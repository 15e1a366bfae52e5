package daemon

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/roots"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

const (
	rootsPoll = 20 * time.Millisecond
	// rootsLate is how long a node may need for a revision before health says so.
	rootsLate = time.Minute
)

// awaitTrees waits until what the cluster had in force when this node started is on its disk.
func (s *service) awaitTrees(ctx context.Context, tell func(catchup.Report)) error {
	head, _ := rootsLog{s.m}.Head()
	for {
		st := s.trees.Status()
		if st.Base >= head.Number || s.trees.CaughtUp() {
			return nil
		}
		tell(catchup.Report{
			Done: st.Progress.BytesDone, Total: st.Progress.Bytes, Unit: catchup.Bytes, Note: progressText(st),
			Starved: len(st.Problems) > 0,
		})
		if !backoff.Sleep(ctx, rootsPoll) {
			return ctx.Err()
		}
	}
}

// progressText says how far a node is with a revision.
func progressText(st roots.Status) string {
	p := st.Progress
	text := fmt.Sprintf("revision %d after %d", st.Head, st.Base)
	switch {
	case st.Head == st.Base:
		text = fmt.Sprintf("revision %d, comparing it with the disk", st.Head)
	case p.Phase == roots.PhaseFetch && p.Bytes > 0:
		text += fmt.Sprintf(", %d of %d MiB fetched, %d of %d files", p.BytesDone>>20, p.Bytes>>20, p.FilesDone, p.Files)
	case p.Phase != "" && p.Phase != roots.PhaseIdle:
		text += ", " + string(p.Phase)
	}
	if len(st.Problems) > 0 {
		text += "; " + st.Problems[0]
	}
	return text
}

func rootsProblem(st roots.Status) string {
	if len(st.Problems) > 0 {
		return strings.Join(st.Problems, "; ")
	}
	return progressText(st)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// openTrees opens the roots and lets others fetch from them.
func (s *service) openTrees(ctx context.Context) error {
	if s.trees.rootsEngine == nil {
		return nil
	}
	s.trees.follow(ctx)
	if err := s.trees.Open(ctx); err != nil {
		s.trees.end()
		return err
	}
	s.kept.Store(true)
	return nil
}

// closeTrees is the end of openTrees.
func (s *service) closeTrees() error {
	if s.trees.rootsEngine == nil {
		return nil
	}
	s.kept.Store(false)
	defer s.trees.end()
	return s.trees.Close()
}

// follow hears what the other masters say about their directories, until end.
func (t *trees) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { t.order.run(ctx) })
	t.end = func() {
		cancel()
		wg.Wait()
	}
}

// checkRoots warns when this node's roots are not as the cluster's, or wait for an operator.
func (s *service) checkRoots(context.Context) health.Result {
	if s.trees.rootsEngine == nil || !s.kept.Load() {
		return fine
	}
	st := s.trees.Status()
	switch {
	case !s.m.ready() && !st.CaughtUp:
		return health.Result{
			Level: health.Fail, Reason: "file and pillar roots are not up to date yet: " + progressText(st),
			Hint: "saltclusterctl roots status shows how far they are",
		}
	case s.rootsLate(st):
		return health.Result{
			Level: health.Warn, Reason: "file and pillar roots are behind the cluster: " + rootsProblem(st),
			Hint: "saltclusterctl roots status",
		}
	case len(st.Held) > 0:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("revision %d of the roots deletes much and waits for a decision", st.Held[0]),
			Hint: fmt.Sprintf("saltclusterctl roots history, then roots confirm %d or roots drop %d", st.Held[0], st.Held[0]),
		}
	case len(st.Problems) > 0:
		return health.Result{Level: health.Warn, Reason: "file and pillar roots: " + rootsProblem(st), Hint: "saltclusterctl roots status"}
	}
	return fine
}

// rootsLate says whether this node has been behind for long.
func (s *service) rootsLate(st roots.Status) bool {
	if st.CaughtUp {
		s.behind.Store(0)
		return false
	}
	now := time.Now().UnixNano()
	s.behind.CompareAndSwap(0, now)
	return time.Duration(now-s.behind.Load()) > rootsLate
}

// rootsLine is the roots' line of the status.
func (s *service) rootsLine() *adminapi.RootsLine {
	r := s.rootsReport()
	line := &adminapi.RootsLine{
		Off: r.Off, Mode: string(r.Status.Mode), Base: r.Status.Base, Head: r.Status.Head, Phase: string(r.Status.Progress.Phase),
		Conflicts: r.Status.Conflicts,
	}
	for _, slot := range r.Status.Slots {
		line.Files += slot.Files
	}
	return line
}
