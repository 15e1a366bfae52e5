package roots

import (
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"saltclusterd/gossip/node"
)

// slowly lets so many bytes of answers through, and then as many more as it is told.
type slowly struct {
	got   atomic.Int64
	stop  int64
	stuck chan struct{} // closed when stop is reached
	on    chan struct{} // closed to go on
	once  atomic.Bool
}

func newSlowly(stop int) *slowly {
	return &slowly{stop: int64(stop), stuck: make(chan struct{}), on: make(chan struct{})}
}

func (s *slowly) spoil(_, _ node.ID, r io.ReadCloser) (io.ReadCloser, error) {
	return &slowReader{r, s}, nil
}

type slowReader struct {
	io.ReadCloser
	s *slowly
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.s.got.Load() >= r.s.stop {
		if r.s.once.CompareAndSwap(false, true) {
			close(r.s.stuck)
		}
		<-r.s.on
	}
	n, err := r.ReadCloser.Read(p[:min(len(p), 32<<10)])
	r.s.got.Add(int64(n))
	return n, err
}

// Whichever side ends in the middle of a fetch: what has arrived is not fetched again.
func TestFetch_ResumeAfterRestart(t *testing.T) {
	for _, who := range []string{"receiver", "sender"} {
		t.Run(who, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("a")
			size := 0
			for i := range 16 {
				a.write(fmt.Sprintf("f%d", i), noise(byte(i), 2<<20))
				size += 2 << 20
			}
			w.await("the first revision", func() bool { return a.store.Status().Stable(16) })
			s := newSlowly(size / 2)
			w.mu.Lock()
			w.spoil = s.spoil
			w.mu.Unlock()
			b := w.start("b")
			<-s.stuck
			n := map[string]*testNode{"receiver": b, "sender": a}[who]
			ended := make(chan struct{})
			go func() { n.close(); close(ended) }()
			close(s.on)
			<-ended
			n.open()
			w.await("b has all", func() bool { return b.store.Status().Stable(16) })
			w.awaitEqual()
			if n := s.got.Load(); n > int64(size)*5/4+(8<<20) { // a batch may have been under way
				t.Errorf("%d MiB were read for %d", n>>20, size>>20)
			}
		})
	}
}
