package takeover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
)

const (
	baseTimeout   = 30 * time.Second
	goTimeout     = 10 * time.Second
	freeTimeout   = time.Minute
	refuseTimeout = time.Second
)

// NewSideConfig is what the new process of a takeover works with. Its functions are called in the order of their
// fields.
type NewSideConfig struct {
	Version string
	Sockets *Sockets

	ReadHost  func(context.Context) error // reads what the host has; nothing of the old process is needed
	Addresses func() []string             // of the ports for minions
	BindDoors func(context.Context) error // binds the servers for load balancers and operators
	// Build builds the membership, which must be that of the old process, and binds its ports.
	Build func(ctx context.Context, uuid string) (Parts, error)
	// OpenShared opens what two processes can have open.
	OpenShared func(context.Context) error
	// CloseDoors closes what BindDoors has bound, when this process cannot take over.
	CloseDoors func()

	Logger *slog.Logger
}

// NewSide is a process that takes over from another one. It prepares everything that needs nothing of the old
// process, imports the connections, and does not use them before the message "go".
type NewSide struct {
	cfg   NewSideConfig
	conn  *handover.Conn
	parts Parts

	free, ended chan struct{} // closed when the old process reports it, or has ended
	following   sync.WaitGroup
}

// NewSide connects to the process to take over from.
func (u *Upgrader) NewSide(cfg NewSideConfig) (*NewSide, error) {
	conn, err := handover.Inherit(u.process.Takeover)
	if err != nil {
		return nil, err
	}
	return newNewSide(conn, cfg), nil
}

func newNewSide(conn *handover.Conn, cfg NewSideConfig) *NewSide {
	return &NewSide{cfg: cfg, conn: conn, free: make(chan struct{}), ended: make(chan struct{})}
}

// Close closes the connection to the old process and waits for the end of Follow.
func (s *NewSide) Close() error {
	err := s.conn.Close()
	s.following.Wait()
	return err
}

// TakeOver returns nil when the connections of the old process belong to this one, which then has to serve them. The
// old process has received the reason of any error, and still serves.
func (s *NewSide) TakeOver(ctx context.Context) error {
	err := s.prepareParts(ctx)
	if err == nil {
		err = s.importParts(ctx)
	}
	if err != nil {
		s.cfg.CloseDoors()
		refusing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refuseTimeout)
		defer cancel()
		_ = s.conn.Send(refusing, msgRefuse, []byte(err.Error())) // it may have ended
		return fmt.Errorf("take over: %w", err)
	}
	s.cfg.Sockets.OwnPaths()
	return nil
}

// prepareParts does everything that needs nothing of a frozen process. It binds all addresses, so that one that is in
// use is found while the old process serves.
func (s *NewSide) prepareParts(ctx context.Context) error {
	if err := s.cfg.ReadHost(ctx); err != nil {
		return err
	}
	h := hello{State: handover.StateVersion, Version: s.cfg.Version}
	if err := s.conn.Send(ctx, msgHello, h.encodeRecord()); err != nil {
		return err
	}
	m, err := s.receiveMessage(ctx, baseTimeout, msgBase)
	if err != nil {
		return err
	}
	b, err := parseBase(m.Payload)
	if err != nil || len(b.Names) != len(m.Descriptors) {
		m.Close()
		return errors.Join(errors.New("unusable beginning"), err)
	}
	s.cfg.Sockets.Inherit(b.Names, m.Descriptors)
	if err := s.cfg.Sockets.Reserve(ctx, "tcp", s.cfg.Addresses()...); err != nil {
		return fmt.Errorf("listen for minions: %w", err)
	}
	if err := s.cfg.BindDoors(ctx); err != nil {
		return err
	}
	if s.parts, err = s.cfg.Build(ctx, b.UUID); err != nil {
		return err
	}
	if err := s.parts.importBase(b); err != nil {
		return err
	}
	if err := s.cfg.OpenShared(ctx); err != nil {
		return err
	}
	return s.conn.Send(ctx, msgPrepared, nil)
}

// importParts imports the connections and the final state, reports that it is ready and waits for "go".
func (s *NewSide) importParts(ctx context.Context) error {
	for _, port := range []struct {
		kind handover.Kind
		load func(edge.State) error
	}{{msgPublish, s.parts.Publish.Import}, {msgRequests, s.parts.Requests.Import}} {
		m, err := s.receiveMessage(ctx, 0, port.kind)
		if err != nil {
			return err
		}
		if err := port.load(edge.State{Record: m.Payload, Descriptors: m.Descriptors}); err != nil {
			return err
		}
	}
	m, err := s.receiveMessage(ctx, goTimeout, msgFinal)
	if err != nil {
		return err
	}
	f, err := parseFinalState(m.Payload)
	if err != nil {
		return err
	}
	if err := s.parts.importFinalState(f, m.Descriptors); err != nil {
		return err
	}
	if err := s.conn.Send(ctx, msgReady, nil); err != nil {
		return err
	}
	_, err = s.receiveMessage(ctx, goTimeout, msgGo)
	return err
}

// receiveMessage waits for a message of the old process; without a timeout as long as that process exists.
func (s *NewSide) receiveMessage(
	ctx context.Context, timeout time.Duration, want handover.Kind,
) (handover.Message, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	m, err := s.conn.Receive(ctx)
	if err == nil && m.Kind != want {
		m.Close()
		err = fmt.Errorf("the old process sent %d when %d was expected", m.Kind, want)
	}
	return m, err
}

// Follow handles the messages of the old process after "go" until it has ended, or Close. isMain is called once: when
// the service manager has this process as the main one, or the old process has ended.
func (s *NewSide) Follow(isMain func()) {
	s.following.Go(func() { s.followOldSide(isMain) })
}

func (s *NewSide) followOldSide(isMain func()) {
	var main, free sync.Once
	for {
		m, err := s.conn.Receive(context.Background())
		if err != nil || m.Kind == msgEnd {
			break
		}
		switch m.Kind {
		case msgMain:
			main.Do(isMain)
		case msgFree:
			free.Do(func() { close(s.free) })
		case msgAnswer:
			a, err := edge.ParseAnswer(m.Payload)
			if err != nil {
				s.cfg.Logger.Error("answer of the old process lost", "err", err)
				continue
			}
			s.parts.Requests.Finish(a)
		}
	}
	if n := s.parts.Requests.Orphan(); n > 0 {
		s.cfg.Logger.Warn("requests of the old process remain unanswered", "count", n)
	}
	main.Do(isMain)
	free.Do(func() { close(s.free) })
	close(s.ended)
}

// Lock returns the lock of state_dir, which is the same open file in both processes.
func (s *NewSide) Lock() (*os.File, error) {
	f := s.cfg.Sockets.Take(LockName)
	if f == nil {
		return nil, errors.New("the old process did not hand over the lock of state_dir")
	}
	s.cfg.Sockets.Keep(LockName, f)
	return f, nil
}

// AwaitFree waits until the old process has closed consensus and everything on disk.
func (s *NewSide) AwaitFree(ctx context.Context) error {
	select {
	case <-s.free:
		return nil
	case <-time.After(freeTimeout):
		return errors.New("the old process does not release the consensus log")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended is closed when no more answers of the old process are due.
func (s *NewSide) Ended() <-chan struct{} { return s.ended }
