package replication

import (
	"io"
	"net/http"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/peer"
)

// PathCatchUp is where a node that catches up asks others, followed by the name of the part.
const PathCatchUp = "/v1/catchup/"

const (
	// maxQuestion is the largest question of a node that catches up, in bytes.
	maxQuestion = 8 << 20
	// maxQuestions is how many questions are answered at a time.
	maxQuestions = 8
)

// places is how many requests of one member are worked on at a time, by path. What holds a large body, or takes long,
// has few. The handler of jobs has four for all members together; one member that is hostile must leave one.
var places = map[string]int{
	datacache.Data.Path(): 3, datacache.Mine.Path(): 3, jobs.Path: 3, tokens.Path: 2, PathCatchUp: 6,
}

// Handle routes the calls of members.
func (s *Stores) Handle(mux *peerrpc.Mux) {
	mux.Handle("POST "+datacache.Data.Path(), s.whenCaughtUp(PartGrains, s.Data.Handler()))
	mux.Handle("POST "+tokens.Path, s.whenCaughtUp(PartTokens, s.Tokens.Handler()))
	mux.Handle("POST "+datacache.Mine.Path(), s.whenCaughtUp(PartMines, s.Mines.Handler()))
	mux.Handle("POST "+jobs.Path, s.whenCaughtUp(PartJobs, s.Jobs.Handler()))
	mux.Handle("POST "+PathCatchUp+"{part}", http.HandlerFunc(s.answerQuestion))
	for path, n := range places {
		mux.Limit(path, n)
	}
}

// whenCaughtUp answers members "starting" until this node has a part, so that they do not send what it is fetching.
func (s *Stores) whenCaughtUp(part string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.held[part].isOpen() || !s.answering.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// answerQuestion answers a node that catches up.
func (s *Stores) answerQuestion(w http.ResponseWriter, r *http.Request) {
	select {
	case s.questions <- struct{}{}:
		defer func() { <-s.questions }()
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
	if !s.answering.Load() {
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
