package spool

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// TestRemovalHangs: records are refused in time also while the disk does not answer to the removal of a segment, and
// whoever looks at the journal does not wait for it.
func TestRemovalHangs(t *testing.T) {
	for name, empty := range map[string]bool{"segments that are done with": false, "one without records": true} {
		t.Run(name, func(t *testing.T) {
			dir, k := t.TempDir(), &sink{fail: errors.New("later")}
			var fails atomic.Bool
			fails.Store(empty)
			removing, answers := make(chan struct{}, 100), make(chan struct{})
			s := open(t, Config{Dir: dir, SegmentBytes: 500, Checkpoint: time.Millisecond, Hang: 20 * time.Millisecond,
				Consumers: []Consumer{{Name: "a", Consume: k.consume}},
				Disk: Disk{
					Sync: func(f *os.File) error {
						if fails.Swap(false) {
							return syscall.EIO
						}
						return f.Sync()
					},
					Remove: func(path string) error {
						removing <- struct{}{}
						<-answers
						return os.Remove(path)
					},
				}})
			t.Cleanup(func() { // before it is closed
				select {
				case <-answers:
				default:
					close(answers)
				}
			})
			patience.WaitFor(t, "segments", func() bool {
				_ = s.Append(t.Context(), record(0)) // the true disk may be slow as well
				return empty && len(removing) > 0 || s.Stats().Segments > 3
			})
			k.set(nil)
			patience.WaitFor(t, "a removal", func() bool { return len(removing) > 0 })
			refused, stats := make(chan error, 1), make(chan Stats, 1)
			go s.Go(record(20), func(err error) { refused <- err; stats <- s.Stats() }, nil)
			patience.WaitFor(t, "refused", func() bool { return len(stats) == 1 })
			if err, st := <-refused, <-stats; !errors.Is(err, ErrHangs) || st.State != StateFailing {
				t.Errorf("%v, %+v", err, st)
			}
			close(answers)
			patience.WaitFor(t, "the journal takes records", func() bool { return s.Append(t.Context(), record(21)) == nil })
			patience.WaitFor(t, "all is done", func() bool { return s.Stats().Consumers[0].Pending == 0 })
			patience.WaitFor(t, "what is done with is removed", func() bool { return s.Stats().Segments <= 1 })
			if st := s.Stats(); st.State != StateOK || st.Damages != 0 {
				t.Errorf("%+v", st)
			}
			checkBytes(t, s, dir)
		})
	}
}

// TestRemovalFails: a segment that cannot be removed stays one of the journal's, and is removed when it can be.
func TestRemovalFails(t *testing.T) {
	dir, k := t.TempDir(), &sink{}
	var works atomic.Bool
	var failed atomic.Int32
	s := open(t, Config{Dir: dir, SegmentBytes: 500, Checkpoint: time.Millisecond,
		Consumers: []Consumer{{Name: "a", Consume: k.consume}},
		Disk: Disk{Remove: func(path string) error {
			if !works.Load() {
				failed.Add(1)
				return syscall.EROFS
			}
			return os.Remove(path)
		}}})
	add(t, s, 0, 20)
	patience.WaitFor(t, "a removal", func() bool { return failed.Load() > 0 })
	require.NoError(t, s.Close()) // no checkpoint is under way
	if n := s.Stats().Segments; n < 2 || n != len(journals(t, dir)) {
		t.Errorf("%d segments, %d files", n, len(journals(t, dir)))
	}
	checkBytes(t, s, dir)
	works.Store(true)
	require.NoError(t, s.Open(t.Context()))
	add(t, s, 20, 30)
	patience.WaitFor(t, "what is done with is removed", func() bool { return s.Stats().Segments <= 1 })
	patience.WaitFor(t, "all of it", func() bool { return len(k.records()) >= 30 })
	if st := s.Stats(); st.Damages != 0 {
		t.Errorf("%+v", st)
	}
}

// checkBytes compares the journal's books with its files.
func checkBytes(t *testing.T, s *Spool, dir string) {
	t.Helper()
	var bytes int64
	s.disk.Lock()
	defer s.disk.Unlock()
	for _, name := range journals(t, dir) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		bytes += info.Size()
	}
	if st := s.Stats(); st.Bytes != bytes {
		t.Errorf("%d bytes in files, %+v", bytes, st)
	}
}
