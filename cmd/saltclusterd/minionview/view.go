package minionview

import (
	"context"
	"log/slog"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/wall"
)

// Config is what a View needs.
type Config struct {
	Connections
	StateDir   string
	Master     *localmaster.Config
	Keys       Keys
	Wall       *wall.Wall
	Routes     func() router.View
	Events     *eventlog.Log // events that the local master got
	Bus        Bus
	Term       func() (term uint64, quorum bool) // the term of raft, and whether a majority can be reached
	Serving    func() bool                       // minions can connect
	HandedOver func() bool                       // another process serves the minions of this one

	PresenceEvents string // config.PresenceAuto, config.PresenceOn or config.PresenceOff
	MinVersion     int    // the lowest payload version that is let in
	Logger         *slog.Logger
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

// View is what a node that serves minions knows of them, its own and those of the other nodes.
type View struct {
	cfg      Config
	presence *Presence
}

// New returns a View. It does nothing until a duty runs or a question comes.
func New(cfg Config) *View {
	v := &View{cfg: cfg}
	v.presence = newPresence(&v.cfg)
	return v
}

// Handle routes the questions of other members.
func (v *View) Handle(mux *peerrpc.Mux) {
	mux.Handle(subscribersRPC.Pattern(), subscribersRPC.Handler(v.cfg.Connections.answer))
	mux.Handle(handledRPC.Pattern(), handledRPC.Handler(v.listHandled))
	mux.Handle(presenceRPC.Pattern(), presenceRPC.Handler(v.presence.answer))
	mux.Handle(protocolsRPC.Pattern(), protocolsRPC.Handler(v.listProofs))
}

// askOthers asks the other masters the same question.
func askOthers[Q, A any](
	ctx context.Context, of Connections, e peerrpc.Endpoint[Q, A], question Q,
) peerrpc.Answers[A] {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return peerrpc.AskAll(ctx, of.Others(), func(ctx context.Context, id node.ID) (A, error) {
		return e.Call(ctx, of.Client, id, question)
	})
}

// keyHash returns the hash of the accepted key of a minion.
func (c *Config) keyHash(id string) (wall.KeyHash, bool) {
	pub, ok := c.Keys.Accepted(id)
	if !ok {
		return wall.KeyHash{}, false
	}
	return wall.HashKey(saltcrypt.CleanKey(pub)), true
}
