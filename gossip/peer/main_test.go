package peer

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 10 * time.Second

// mesh is a set of ports on loopback which share one roster.
type mesh struct {
	t    *testing.T
	book *Book
	rev  uint64
	mu   sync.Mutex
}

func newMesh(t *testing.T) *mesh {
	t.Helper()
	book, err := OpenBook("")
	require.NoError(t, err)
	return &mesh{t: t, book: book}
}

// add puts entries into the roster.
func (m *mesh) add(entries ...node.Entry) {
	m.t.Helper()
	m.change(func(all []node.Entry) []node.Entry { return append(all, entries...) })
}

// remove takes a node out of the roster and returns its fingerprint; it does not revoke.
func (m *mesh) remove(id node.ID) node.Fingerprint {
	m.t.Helper()
	removed := m.change(func(all []node.Entry) []node.Entry {
		var rest []node.Entry
		for _, e := range all {
			if e.ID != id {
				rest = append(rest, e)
			}
		}
		return rest
	})
	if len(removed) != 1 {
		m.t.Fatalf("removing %s removed %d certificates", id, len(removed))
	}
	return removed[0]
}

func (m *mesh) change(f func([]node.Entry) []node.Entry) []node.Fingerprint {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	removed, err := m.book.Set(m.rev, f(m.book.Entries()))
	require.NoError(m.t, err)
	return removed
}

func identity(t *testing.T, id node.ID) *Identity {
	t.Helper()
	i, err := NewIdentity(id)
	require.NoError(t, err)
	return i
}

// port opens a port which is not on the roster.
func (m *mesh) port(id node.ID, edit func(*Config)) *Port {
	m.t.Helper()
	cfg := Config{
		Listen: "127.0.0.1:0", Identity: identity(m.t, id), Roster: m.book, Logger: testLogger(m.t),
		Limits: Limits{Sweep: time.Hour, Handshake: time.Minute, JoinProof: time.Minute}, // on a busy machine they take long
	}
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPort(cfg)
	require.NoError(m.t, err)
	require.NoError(m.t, p.Open(context.Background()))
	m.t.Cleanup(func() {
		check.NoError(m.t, p.Close(), "close port of", id)
	})
	return p
}

// member opens a port and puts it on the roster.
func (m *mesh) member(id node.ID, edit func(*Config)) *Port {
	m.t.Helper()
	p := m.port(id, edit)
	m.add(entryOf(p))
	return p
}

func entryOf(p *Port) node.Entry {
	return node.Entry{ID: p.ID(), Addr: p.Advertise(), Fingerprint: p.cfg.Identity.Fingerprint()}
}

// echo serves a protocol by sending back what comes.
func echo(t *testing.T, p *Port, proto string) {
	t.Helper()
	l, err := p.Listener(proto)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		_ = p.Close() // cuts the connections being echoed
		wg.Wait()
	})
}

// works sends a few bytes through an echo.
func works(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

func dial(t *testing.T, p *Port, id node.ID, proto string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	c, err := p.Dial(ctx, id, proto)
	require.NoError(t, err, "dial")
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// rawDial does the handshake a stranger would do, and reports what the first read says: with TLS 1.3 the refusal of a
// client certificate arrives only then.
func rawDial(t *testing.T, p *Port, cfg *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	cfg.InsecureSkipVerify = true
	d := &net.Dialer{Timeout: testTimeout}
	c, err := tls.DialWithDialer(d, "tcp", p.Addr().String(), cfg)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	_, err = c.Read(make([]byte, 1))
	return c.ConnectionState(), err
}

func testLogger(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
