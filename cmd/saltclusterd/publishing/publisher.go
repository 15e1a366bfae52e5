package publishing

import (
	"fmt"
	"log/slog"
	"time"

	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
)

// PublisherConfig is what a Publisher needs.
type PublisherConfig struct {
	Republished func(jid string, plain []byte) bool // it was published from the job cache already
	Overdue     func(jid string) bool               // its command line gave up while this process stood still
	Notify      []func(saltwire.PubPeek, []byte)    // called with each job of the local master, before it leaves
	Hub         func() Sender
	Logger      *slog.Logger
}

// Sender sends publications of the local master to the minions of all nodes. fanout.Hub is one.
type Sender interface {
	PeekLocal(plain []byte) (saltwire.PubPeek, error)
	Local(fanout.Publication, saltwire.PubPeek) error
}

// Publisher passes publications of the local master on to the minions of all nodes.
type Publisher struct{ c PublisherConfig }

// NewPublisher returns a Publisher.
func NewPublisher(c PublisherConfig) *Publisher { return &Publisher{c: c} }

// Publish passes on a publication that the local master sent, unless that was done when it was long overdue, or its
// command line has given up: a job must not run long after it was typed, and its operator may have repeated it.
func (p *Publisher) Publish(pub fanout.Publication) error {
	peek, err := p.c.Hub().PeekLocal(pub.Plain)
	if err != nil {
		return err
	}
	if p.c.Republished(peek.JID, pub.Plain) {
		p.c.Logger.Info("publication arrived long after the salt-master saved it; it had already been published from the job cache",
			"jid", peek.JID)
		return nil
	}
	if p.c.Overdue(peek.JID) {
		p.c.Logger.Warn("job of the salt-master not published: its command line gave up while saltclusterd stood still",
			"jid", peek.JID)
		return nil
	}
	if peek.JID != "" && !pub.TopicOnly { // not for further copies of one publication
		p.notify(peek, pub.Plain)
	}
	return p.c.Hub().Local(pub, peek)
}

func (p *Publisher) notify(peek saltwire.PubPeek, plain []byte) {
	for _, notify := range p.c.Notify {
		notify(peek, plain)
	}
}

// PublishMissed publishes a job that the local master published while nothing was connected to it.
func (p *Publisher) PublishMissed(plain []byte) error {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		return fmt.Errorf("read job from the job cache: %w", err)
	}
	p.notify(peek, plain)
	return p.c.Hub().Local(fanout.Publication{Plain: plain}, peek)
}

// Timeout is how long the master's command line waits before it asks for its job (again).
func Timeout(master *localmaster.Config) time.Duration {
	return time.Duration(master.Int("timeout")+master.Int("gather_job_timeout")) * time.Second
}

// CountReturns counts the returns of a job in the master's job cache, and those that are expected.
func CountReturns(master *localmaster.Config, jid string) (got, want int) {
	return jobcache.Progress(master.CacheDir, master.Text("hash_type"), jid)
}
