package minionview

import (
	"context"
	"log/slog"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/wall"
)

// Config is what a View needs.
type Config struct {
	Self    node.ID
	Others  func() []node.ID // the other members that have a salt-master
	Client  peerrpc.Client
	Service *Service // nil: this node is a witness
	Logger  *slog.Logger
}

// Service is what a View needs of a node that serves minions.
type Service struct {
	StateDir    string
	Master      *localmaster.Config
	Keys        Keys
	Wall        *wall.Wall
	Subscribers func() []edge.Subscriber // connections to the publish port
	Routes      func() router.View
	Events      *eventlog.Log // events that the local master got
	Bus         Bus
	Term        func() (term uint64, quorum bool) // the term of raft, and whether a majority can be reached
	Serving     func() bool                       // minions can connect
	HandedOver  func() bool                       // another process serves the minions of this one

	PresenceEvents string // config.PresenceAuto, config.PresenceOn or config.PresenceOff
	MinVersion     int    // the lowest payload version that is let in
}

// Keys are the accepted keys of minions.
type Keys interface {
	IDs() []string
	Accepted(id string) (pub string, ok bool)
}

// Bus is the event bus of the local master.
type Bus interface {
	Takes() bool
	Fire(ctx context.Context, tag string, data map[string]any) error
}

// View is what this node knows of minions, its own and those of the other nodes.
type View struct {
	cfg      Config
	svc      *Service
	presence *Presence
}

// New returns a View. It does nothing until a duty runs or a question comes.
func New(cfg Config) *View {
	return &View{cfg: cfg, svc: cfg.Service, presence: newPresence(cfg)}
}

// Handle routes the questions of other members. A witness has no answers to them.
func (v *View) Handle(mux *peerrpc.Mux) {
	mux.Handle(subscribersRPC.Pattern(), subscribersRPC.Handler(v.listSubscribers))
	mux.Handle(handledRPC.Pattern(), handledRPC.Handler(v.listHandled))
	mux.Handle(presenceRPC.Pattern(), presenceRPC.Handler(v.presence.answer))
	mux.Handle(protocolsRPC.Pattern(), protocolsRPC.Handler(v.listProofs))
}

// askOthers asks the other masters the same question.
func askOthers[Q, A any](ctx context.Context, cfg Config, e peerrpc.Endpoint[Q, A], question Q) peerrpc.Answers[A] {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return peerrpc.AskAll(ctx, cfg.Others(), func(ctx context.Context, id node.ID) (A, error) {
		return e.Call(ctx, cfg.Client, id, question)
	})
}

// keyHash returns the hash of the accepted key of a minion.
func (s *Service) keyHash(id string) (wall.KeyHash, bool) {
	pub, ok := s.Keys.Accepted(id)
	if !ok {
		return wall.KeyHash{}, false
	}
	return wall.HashKey(saltcrypt.CleanKey(pub)), true
}
