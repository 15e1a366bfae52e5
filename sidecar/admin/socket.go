package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// listenSocket makes the socket file: 0660, owned by our user and the allowed group.
// Until the mode is set only our own user can connect, because the umask never
// grants others the write permission that connecting needs.
func (s *Server) listenSocket(ctx context.Context) (net.Listener, error) {
	path := s.cfg.Socket
	if s.cfg.Inherited != nil {
		if l, err := s.cfg.Inherited(path); l != nil || err != nil {
			s.inherited = l != nil
			return s.limitListener(l), err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := s.setGroup(-1); err != nil {
		l.Close()
		return nil, err
	}
	return s.limitListener(l.(*net.UnixListener)), nil
}

// setGroup has the allowed group connect, and our own user: 0660. Where none is configured the socket is that group's;
// -1: whose it is.
func (s *Server) setGroup(group int) error {
	if s.grouped {
		group = int(s.group)
	}
	if err := os.Chown(s.cfg.Socket, -1, group); err != nil {
		return err
	}
	return os.Chmod(s.cfg.Socket, 0o660)
}

// limitListener limits the connections of a listener.
func (s *Server) limitListener(u *net.UnixListener) net.Listener {
	if u == nil {
		return nil
	}
	if s.cfg.Made != nil {
		s.cfg.Made(s.cfg.Socket, u)
	}
	return &listener{UnixListener: u, limit: int64(s.cfg.MaxConnections), refused: s.metrics.countRefused}
}

// removeStale removes a socket on which no process listens any more. Anything
// else in its place is an error.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("something that is not a socket is in its place")
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return errors.New("another saltclusterd answers on it")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("ask whether another saltclusterd uses it: %w", err)
	}
	return os.Remove(path)
}

// listener bounds the number of connections and notes who is at their other
// end.
type listener struct {
	*net.UnixListener
	limit   int64
	open    atomic.Int64
	refused func()
}

// conn is one connection and its peer.
type conn struct {
	*net.UnixConn
	peer peer
	done func()
	shut atomic.Bool
}

// Accept returns the next connection within the limit; those beyond are
// closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.limit {
			l.open.Add(-1)
			l.refused()
			c.Close()
			continue
		}
		return &conn{UnixConn: c, peer: peerOf(c), done: func() { l.open.Add(-1) }}, nil
	}
}

// Close gives the place in the limit back, once.
func (c *conn) Close() error {
	if c.shut.CompareAndSwap(false, true) {
		c.done()
	}
	return c.UnixConn.Close()
}
