package roots

import (
	"io"
	"testing"
	"time"

	"saltclusterd/gossip/node"
)

// stuck is a peer that stops reading, or sending, in the middle.
type stuck struct {
	io.ReadCloser
	closed chan struct{}
}

func (s stuck) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s stuck) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return s.ReadCloser.Close()
}

func TestClose_StalledPeers(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.cfg.Timing.Stall = testTimeout
	a.write("f", noise(1, 20<<20))
	a.open()
	w.await("the first revision", func() bool { return a.store.Status().Stable(1) })
	asked := make(chan struct{}, 100)
	w.mu.Lock()
	w.spoil = func(_, _ node.ID, r io.ReadCloser) (io.ReadCloser, error) {
		asked <- struct{}{}
		return stuck{r, make(chan struct{})}, nil
	}
	w.mu.Unlock()
	b := w.node("b")
	b.cfg.Timing.Stall = testTimeout
	b.open()
	<-asked // b waits for a, and a for b to read
	began := time.Now()
	b.close()
	a.close()
	if took := time.Since(began); took > testTimeout/2 {
		t.Errorf("it took %s", took)
	}
}
