package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"saltclusterd/backoff"
)

const (
	agentTimeout = time.Second
	agentDrain   = 1 << 10 // bytes of agent-send that are read and dropped
)

const (
	cautious  = 75 // percent of its weight that a node with a warning asks for
	slowFirst = 10 // percent that one begins with which has just become well
	slowStep  = 5  // HAProxy logs every change
)

// AgentLine is what HAProxy's agent-check reads: "up N% ready", "drain",
// "maint" or "down #<failing checks>". "ready" is needed because HAProxy keeps
// a server in drain or maintenance until it hears that word. N is below 100
// when something warns, and for SlowStart after the node has become well. One
// line is about both ports, and a server that is down loses its connections:
// so what only requests suffer from (no salt-master answers) is a warning here,
// and the check of /req takes the node from 4506.
func (c *Checker) AgentLine() string {
	r, pub := c.Report(ScopePub|ScopeReq), c.Report(ScopePub)
	switch {
	case r.Maintenance:
		return "maint\n"
	case r.Draining:
		return "drain\n"
	case !pub.OK:
		return "down #" + r.failingNames() + "\n"
	default:
		return fmt.Sprintf("up %d%% ready\n", r.weightPercent(time.Now(), c.cfg.SlowStart))
	}
}

// weightPercent is the part of a node's weight, in percent, with which it shall get new connections.
func (r Report) weightPercent(now time.Time, slow time.Duration) int {
	full := 100
	if len(r.Bad()) > 0 {
		full = cautious
	}
	well := now.Sub(r.Well)
	if r.Well.IsZero() || slow <= 0 || well >= slow {
		return full
	}
	part := slowFirst + int((100-slowFirst)*max(well, 0)/slow)
	return min(full, max(slowFirst, part-part%slowStep))
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
			if isTransient(err) && backoff.Sleep(ctx, 100*time.Millisecond) {
				continue
			}
			return fmt.Errorf("serve agent-check: %w", err)
		}
		s.g.Go(func() error { s.answerAgent(c); return nil })
	}
}

// isTransient reports whether Accept may work again on its own.
func isTransient(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) answerAgent(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(agentTimeout))
	if _, err := io.WriteString(c, s.cfg.Checker.AgentLine()); err != nil {
		return
	}
	// Unread bytes of agent-send would turn our close into a reset, and the
	// line might be lost with it.
	if t, ok := c.(*countedConn).Conn.(*net.TCPConn); ok {
		t.CloseWrite()
	}
	io.CopyN(io.Discard, c, agentDrain)
}
