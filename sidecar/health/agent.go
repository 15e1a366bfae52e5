package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	agentTimeout = time.Second
	agentDrain   = 1 << 10 // bytes of agent-send that are read and dropped
)

// AgentLine is what HAProxy's agent-check reads: "up 100% ready", "drain" or
// "down #<failing checks>". "ready" is needed because HAProxy keeps a server in
// drain until it hears that word.
func (c *Checker) AgentLine() string {
	r := c.Report(ScopePub | ScopeReq)
	switch {
	case r.Draining:
		return "drain\n"
	case !r.OK:
		return "down #" + r.failing() + "\n"
	default:
		return "up 100% ready\n"
	}
}

// serveAgent answers each connection with one line. The listener's limit
// bounds the goroutines.
func (s *Server) serveAgent(ctx context.Context) error {
	for {
		c, err := s.agt.Accept()
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
				return nil
			}
			if transient(err) && pause(ctx) {
				continue
			}
			return fmt.Errorf("serve agent-check: %w", err)
		}
		s.g.Go(func() error { s.answerAgent(c); return nil })
	}
}

// transient reports whether Accept may work again by itself.
func transient(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause keeps a failing Accept from spinning; false: ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

func (s *Server) answerAgent(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(agentTimeout))
	if _, err := io.WriteString(c, s.cfg.Checker.AgentLine()); err != nil {
		return
	}
	// Bytes of agent-send that nobody reads would turn our close into a reset,
	// and the line might be lost with it.
	if t, ok := c.(*countedConn).Conn.(*net.TCPConn); ok {
		t.CloseWrite()
	}
	io.CopyN(io.Discard, c, agentDrain)
}
