package herd

import (
	"context"
	"errors"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/zmtp"
)

// errTimeout is SaltReqTimeoutError.
var errTimeout = errors.New("no answer in time")

// First pause and longest pause between connection attempts of a REQ socket.
const (
	reqReconnect    = 100 * time.Millisecond
	reqReconnectMax = 5 * time.Second
)

// reqSocket is a REQ socket of libzmq as minions use it: it connects at once and again whenever the connection breaks,
// sends when it is connected, and what was sent on a connection that broke is lost.
type reqSocket struct {
	dial Dialer
	addr string

	mu     sync.Mutex
	live   *zmtp.Client  // nil: not connected now
	joined chan struct{} // closed when live is set next

	replies chan []byte
	cancel  context.CancelFunc
	ended   chan struct{}
}

func openReq(ctx context.Context, dial Dialer, addr string) *reqSocket {
	ctx, cancel := context.WithCancel(ctx)
	s := &reqSocket{
		dial: dial, addr: addr, joined: make(chan struct{}), replies: make(chan []byte, 1), cancel: cancel,
		ended: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

func (s *reqSocket) close() {
	s.cancel()
	s.mu.Lock()
	if s.live != nil {
		_ = s.live.Close()
	}
	s.mu.Unlock()
	<-s.ended
}

func (s *reqSocket) run(ctx context.Context) {
	defer close(s.ended)
	wait := backoff.Backoff{Min: reqReconnect, Max: reqReconnectMax}
	for ctx.Err() == nil {
		z, err := connect(ctx, s.dial, s.addr, socketReq)
		if err == nil {
			wait.Reset()
			s.serve(ctx, z)
		}
		if !wait.Wait(ctx) {
			return
		}
	}
}

// serve reads until the connection ends.
func (s *reqSocket) serve(ctx context.Context, z *zmtp.Client) {
	stop := context.AfterFunc(ctx, func() { _ = z.Close() })
	defer stop()
	s.mu.Lock()
	s.live = z
	close(s.joined)
	s.mu.Unlock()
	for {
		parts, err := z.ReadMessage()
		if err != nil {
			break
		}
		if len(parts) != 2 || len(parts[0]) != 0 {
			break
		}
		select {
		case s.replies <- parts[1]:
		default: // not asked for: an earlier reply was not taken yet
		}
	}
	_ = z.Close()
	s.mu.Lock()
	s.live, s.joined = nil, make(chan struct{})
	s.mu.Unlock()
}

// ask sends a request when there is a connection and waits for the answer. The caller asks once at a time, and closes
// the socket after errTimeout, as Salt does: an answer that comes late must not be taken for another's.
func (s *reqSocket) ask(ctx context.Context, body []byte, within time.Duration) ([]byte, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-s.replies: // to nothing we have asked
	default:
	}
	for {
		s.mu.Lock()
		z, joined := s.live, s.joined
		s.mu.Unlock()
		if z != nil {
			if z.WriteMessage(nil, body) == nil {
				break
			}
			_ = z.Close()
		}
		select {
		case <-joined:
		case <-late.C:
			return nil, errTimeout
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if z != nil && !backoff.Sleep(ctx, time.Millisecond) { // its reader is about to see that it is closed
			return nil, ctx.Err()
		}
	}
	select {
	case reply := <-s.replies:
		return reply, nil
	case <-late.C:
		return nil, errTimeout
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
