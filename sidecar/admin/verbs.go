package admin

import (
	"context"
	"io"
	"net/http"

	"saltclusterd/sidecar/adminapi"
)

// Verbs routes the verbs of one capability to it. The functions of this package that return one name the methods that a
// capability must have.
//
// An *adminapi.Error anywhere in the chain of an error that a method returns decides code and hint; every other error
// becomes "internal" with its text.
type Verbs func(s *Server, mux *http.ServeMux)

// Reporter reports what this node knows, even while peers are down or a leader is missing. Contexts end after
// Config.RequestTimeout.
type Reporter interface {
	Version(ctx context.Context) (adminapi.Version, error)
	Status(ctx context.Context) (adminapi.Status, error)
	Members(ctx context.Context) (adminapi.Members, error)
	RingInfo(ctx context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error)
	Config(ctx context.Context) (adminapi.Config, error)
}

// Reports are the verbs that ask about this node and its cluster.
func Reports(r Reporter) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/version", serveRead(s, "version", r.Version))
		mux.HandleFunc("GET /v1/status", serveRead(s, "status", r.Status))
		mux.HandleFunc("GET /v1/members", serveRead(s, "members", r.Members))
		mux.HandleFunc("GET /v1/config", serveRead(s, "config", r.Config))
		mux.HandleFunc("GET /v1/ring", serveQuery(s, "ring", 0,
			func(ctx context.Context, q *http.Request) (adminapi.RingInfo, error) {
				v := q.URL.Query()
				ring := adminapi.RingQuery{Minion: v.Get("minion"), JID: v.Get("jid")}
				if err := ring.Validate(); err != nil {
					return adminapi.RingInfo{}, err
				}
				return r.RingInfo(ctx, ring)
			}))
	}
}

// Joiner makes this node a member. The contexts end when the client goes away, when its timeout is over or when the
// server closes. Before the point of no return everything must then be left as it was; after it, only the waiting
// stops. A timeout is reported as adminapi.CodeTimeout with what was waited for.
type Joiner interface {
	Bootstrap(ctx context.Context, r adminapi.BootstrapRequest, p Progress) (adminapi.Outcome, error)
	Join(ctx context.Context, r adminapi.JoinRequest, p Progress) (adminapi.Outcome, error)
}

// Joining are the verbs bootstrap and join.
func Joining(j Joiner) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/bootstrap", serveLong(s, "bootstrap", j.Bootstrap))
		mux.HandleFunc("POST /v1/join", serveLong(s, "join", j.Join))
	}
}

// Drainer makes minions leave a node, and lets them back.
type Drainer interface {
	Drain(ctx context.Context, r adminapi.DrainRequest, p Progress) (adminapi.Outcome, error)
	Undrain(ctx context.Context, r adminapi.UndrainRequest, p Progress) (adminapi.Outcome, error)
}

// Draining are the verbs drain and undrain.
func Draining(d Drainer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/drain", serveStreamed(s, "drain", d.Drain))
		mux.HandleFunc("POST /v1/undrain", serveStreamed(s, "undrain", d.Undrain))
	}
}

// Governor decides about members.
type Governor interface {
	Remove(ctx context.Context, r adminapi.RemoveRequest, p Progress) (adminapi.Outcome, error)
}

// Governing is the verb remove.
func Governing(g Governor) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/remove", serveLong(s, "remove", g.Remove))
	}
}

// Rotator replaces secrets of the cluster.
type Rotator interface {
	Rotate(ctx context.Context, r adminapi.RotateRequest, p Progress) (adminapi.Outcome, error)
}

// Rotating is the verb rotate.
func Rotating(r Rotator) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/rotate", serveLong(s, "rotate", r.Rotate))
	}
}

// Transferrer makes another member lead.
type Transferrer interface {
	Transfer(ctx context.Context, r adminapi.TransferRequest, p Progress) (adminapi.Outcome, error)
}

// Transferring is the verb transfer.
func Transferring(t Transferrer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("POST /v1/transfer", serveLong(s, "transfer", t.Transfer))
	}
}

// Recoverer makes a cluster of what one node has.
type Recoverer interface {
	RecoverPlan(ctx context.Context) (adminapi.RecoverPlan, error)
	Recover(ctx context.Context, r adminapi.RecoverRequest, p Progress) (adminapi.Outcome, error)
	// SaveSnapshot writes nothing when it fails before the first byte.
	SaveSnapshot(ctx context.Context, w io.Writer) error
	RestoreSnapshot(ctx context.Context, r adminapi.RestoreRequest, file io.Reader, p Progress) (adminapi.Outcome, error)
}

// Recovery are the verbs recover and snapshot.
func Recovery(r Recoverer) Verbs {
	return func(s *Server, mux *http.ServeMux) {
		mux.HandleFunc("GET /v1/recover", serveRead(s, "recover_plan", r.RecoverPlan))
		mux.HandleFunc("POST /v1/recover", serveLong(s, "recover", r.Recover))
		mux.HandleFunc("GET /v1/snapshot", s.saveSnapshot(r))
		mux.HandleFunc("POST /v1/snapshot", s.restoreSnapshot(r))
	}
}

// Progress tells the client what an operation is doing: a short stable step name and a sentence, and how much of the
// step is done, in percent, when that is known. It may be called from any goroutine until the operation returns and
// does not block for long.
type Progress func(step, message string, percent ...int)
