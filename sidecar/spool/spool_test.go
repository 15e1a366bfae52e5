package spool

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestAppendedIsDelivered(t *testing.T) {
	a, b := &sink{}, &sink{most: 3}
	s := open(t, Config{Dir: t.TempDir(), Consumers: []Consumer{
		{Name: "a", Consume: a.consume}, {Name: "b", Consume: b.consume},
	}})
	r := record(0)
	r.Attachment = "plan"
	require.NoError(t, s.Append(context.Background(), r))
	add(t, s, 1, 50)
	for _, k := range []*sink{a, b} {
		patience.WaitFor(t, "all delivered", func() bool { return len(k.records()) >= 50 })
		check(t, k.records(), 0, 50)
		if k.records()[0].Attachment != "plan" {
			t.Error("the attachment got lost on the way through memory")
		}
	}
}

// TestWaitingConsumer: one that fails does not hold up the other, gets everything afterwards, from the disk too.
func TestWaitingConsumer(t *testing.T) {
	good, bad := &sink{}, &sink{fail: errors.New("bus down")}
	dir := t.TempDir()
	c := Config{Dir: dir, KeepBytes: 500, SegmentBytes: 2000, Checkpoint: time.Millisecond, Consumers: []Consumer{
		{Name: "files", Consume: good.consume}, {Name: "events", Consume: bad.consume},
	}}
	s := open(t, c)
	add(t, s, 0, 200)
	patience.WaitFor(t, "delivered", func() bool { return len(good.records()) == 200 })
	if n := len(journals(t, dir)); n < 5 {
		t.Errorf("%d segments", n)
	}
	st := s.Stats()
	if st.Consumers[1].Err == "" || st.Consumers[1].Pending != 200 {
		t.Errorf("%+v", st.Consumers)
	}
	bad.set(nil)
	patience.WaitFor(t, "caught up", func() bool { return len(bad.records()) == 200 })
	check(t, bad.records(), 0, 200)
	patience.WaitFor(t, "segments removed", func() bool { return len(journals(t, dir)) <= 1 })
}

// TestKilledAndRestarted: what a consumer had returned from is not repeated, the rest comes.
func TestKilledAndRestarted(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	first := &sink{}
	c := Config{Dir: dir, Checkpoint: time.Hour, Consumers: []Consumer{{Name: "a", Consume: first.consume}}}
	s := open(t, c)
	add(t, s, 0, 10)
	patience.WaitFor(t, "ten", func() bool { return s.Stats().Consumers[0].Done == 10 })
	first.set(errors.New("later"))
	add(t, s, 10, 20)
	copyDir(t, dir, killed)
	for name, want := range map[string]int{"": 10, "another boot": 0} {
		again := &sink{}
		copied := t.TempDir()
		copyDir(t, killed, copied)
		open(t, Config{Dir: copied, Disk: Disk{Boot: name}, Consumers: []Consumer{{Name: "a", Consume: again.consume}}})
		patience.WaitFor(t, "the rest", func() bool { return len(again.records()) >= 20-want })
		check(t, again.records(), want, 20)
	}
}

func TestCheckpointSyncsFirst(t *testing.T) {
	dir, k := t.TempDir(), &sink{}
	var fail atomic.Bool
	fail.Store(true)
	c := Config{Dir: dir, Checkpoint: time.Millisecond, Consumers: []Consumer{{Name: "a", Consume: k.consume,
		Sync: func(context.Context) error {
			if fail.Load() {
				return errors.New("disk")
			}
			return nil
		}}}}
	s := open(t, c)
	add(t, s, 0, 5)
	patience.WaitFor(t, "five", func() bool { return s.Stats().Consumers[0].Done == 5 })
	s.Close()
	again := &sink{}
	c.Disk.Boot, c.Consumers[0].Consume = "another", again.consume
	fail.Store(false)
	s = open(t, c)
	patience.WaitFor(t, "again", func() bool { return len(again.records()) == 5 })
	s.Close()
	third := &sink{}
	c.Disk.Boot, c.Consumers[0].Consume = "third", third.consume
	s = open(t, c)
	add(t, s, 5, 6)
	patience.WaitFor(t, "the new one", func() bool { return len(third.records()) == 1 })
	check(t, third.records(), 5, 6)
}

// TestLostFileSystem: nothing is taken for done whose effects may be lost, also when the machine does not know of the
// loss.
func TestLostFileSystem(t *testing.T) {
	dir, lost, k, again := t.TempDir(), t.TempDir(), &sink{}, &sink{}
	c := Config{Dir: dir, Checkpoint: time.Hour, Consumers: []Consumer{{
		Name: "a", Consume: k.consume, Sync: func(context.Context) error { return nil },
	}}}
	s := open(t, c)
	add(t, s, 0, 5)
	patience.WaitFor(t, "five", func() bool { return s.Stats().Consumers[0].Done == 5 })
	s.Close()
	s = open(t, c)
	add(t, s, 5, 10)
	patience.WaitFor(t, "five more", func() bool { return s.Stats().Consumers[0].Done == 10 })
	copyDir(t, dir, lost)
	open(t, Config{Dir: lost, Consumers: []Consumer{{Name: "a", Consume: again.consume}}})
	patience.WaitFor(t, "what was not synced", func() bool { return len(again.records()) == 5 })
	check(t, again.records(), 5, 10)
}

// TestFailedSync: a disk that has failed once may have lost what was written before, also when it does not fail again.
func TestFailedSync(t *testing.T) {
	dir, k := t.TempDir(), &sink{}
	var fail atomic.Bool
	fail.Store(true)
	c := Config{Dir: dir, Checkpoint: time.Millisecond, Consumers: []Consumer{{Name: "a", Consume: k.consume,
		Sync: func(context.Context) error {
			if fail.Swap(false) {
				return errors.New("disk")
			}
			return nil
		}}}}
	s := open(t, c)
	add(t, s, 0, 5)
	durable := func() uint64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.consumers[0].durable
	}
	patience.WaitFor(t, "all is durable", func() bool { return durable() == 5 })
	got := k.records()
	if len(got) < 6 || got[len(got)-1].Seq != 5 || fail.Load() {
		t.Errorf("given %d times", len(got))
	}
}

// TestSlowCheckpoint: a disk that takes long to sync holds up neither the consumer nor Close, and whoever has the
// journal next is left alone by a checkpoint that ends later.
func TestSlowCheckpoint(t *testing.T) {
	dir, k := t.TempDir(), &sink{}
	syncing, answer := make(chan struct{}, 100), make(chan struct{})
	c := Config{Dir: dir, Checkpoint: time.Millisecond, SegmentBytes: 500,
		Consumers: []Consumer{{Name: "a", Consume: k.consume,
			Sync: func(context.Context) error {
				syncing <- struct{}{}
				<-answer
				return nil
			}}}}
	s := open(t, c)
	add(t, s, 0, 5)
	<-syncing
	add(t, s, 5, 100)
	patience.WaitFor(t, "the rest while the disk syncs", func() bool { return s.Stats().Consumers[0].Done == 100 })
	s.Close()
	again := &sink{}
	second := open(t, Config{Dir: dir, Checkpoint: time.Hour, Consumers: []Consumer{{Name: "a", Consume: again.consume}}})
	files := journals(t, dir)
	close(answer)
	<-s.consumers[0].saving
	if now := journals(t, dir); !slices.Equal(now, files) {
		t.Errorf("files of the next one changed: %d, %d", len(files), len(now))
	}
	add(t, second, 100, 101)
	patience.WaitFor(t, "all of it", func() bool { return len(again.records()) == 101 })
	check(t, again.records(), 0, 101)
}

// TestGroupCommit measures fsyncs per 1,000 concurrent appends.
func TestGroupCommit(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), Disk: Disk{Sync: func(f *os.File) error {
		time.Sleep(2 * time.Millisecond) // a disk
		return f.Sync()
	}}})
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 1000 {
		wg.Go(func() {
			if err := s.Append(context.Background(), record(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	t.Logf("1,000 concurrent appends: %d fsyncs in %v", st.Syncs, time.Since(start))
	if st.Syncs > 500 || st.Appended != 1000 {
		t.Errorf("%d fsyncs for %d records", st.Syncs, st.Appended)
	}
}

func TestFullIsSaid(t *testing.T) {
	k := &sink{fail: errors.New("later")}
	s := open(t, Config{Dir: t.TempDir(), MaxBytes: 2000, SegmentBytes: 500, Checkpoint: time.Millisecond,
		Consumers: []Consumer{{Name: "a", Consume: k.consume}}})
	n, err := 0, error(nil)
	for ; err == nil && n < 1000; n++ {
		err = s.Append(context.Background(), record(n))
	}
	n--
	if !errors.Is(err, ErrFull) || s.Stats().State != StateFull {
		t.Fatalf("%v, %+v", err, s.Stats())
	}
	k.set(nil)
	patience.WaitFor(t, "room again", func() bool { return s.Append(context.Background(), record(n)) == nil })
	if st := s.Stats(); st.State != StateOK {
		t.Errorf("%+v", st)
	}
	patience.WaitFor(t, "delivered", func() bool { return len(k.records()) == n+1 })
	check(t, k.records(), 0, n+1)
}

func TestRefusals(t *testing.T) {
	block := make(chan struct{})
	s := open(t, Config{Dir: t.TempDir(), MaxRecord: 100, MaxWaiting: 300, Disk: Disk{Sync: func(f *os.File) error {
		<-block
		return f.Sync()
	}}})
	if err := s.Append(context.Background(), Record{Load: make([]byte, 200)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Append(ctx, record(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	busy := false
	for i := range 20 {
		s.Go(record(i), func(err error) { busy = busy || errors.Is(err, ErrBusy) }, nil)
	}
	if !busy {
		t.Error("never busy")
	}
	close(block)
	s.Close()
	if err := s.Append(context.Background(), record(0)); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestDiskErrors: nothing is acknowledged that is not on disk, the state says why, and it goes on when the disk does.
func TestDiskErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		state  State
		onSync bool
	}{
		"disk full": {syscall.ENOSPC, StateDiskFull, false}, "full at sync": {syscall.ENOSPC, StateDiskFull, true},
		"read-only": {syscall.EROFS, StateReadOnly, false}, "broken": {syscall.EIO, StateFailing, true},
	} {
		t.Run(name, func(t *testing.T) {
			var fail atomic.Bool
			d := Disk{
				Write: func(f *os.File, b []byte, at int64) (int, error) {
					if fail.Load() && !c.onSync {
						n, _ := f.WriteAt(b[:len(b)/2], at)
						return n, c.err
					}
					return f.WriteAt(b, at)
				},
				Sync: func(f *os.File) error {
					if fail.Load() && c.onSync {
						return c.err
					}
					return f.Sync()
				},
			}
			dir, k := t.TempDir(), &sink{}
			keep := func(context.Context) error { return errors.New("all segments are to stay") }
			cfg := Config{Dir: dir, Disk: d, Consumers: []Consumer{{Name: "a", Consume: k.consume, Sync: keep}}}
			s := open(t, cfg)
			add(t, s, 0, 3)
			fail.Store(true)
			for range 3 {
				if err := s.Append(context.Background(), record(99)); !errors.Is(err, c.err) {
					t.Fatalf("error %v", err)
				}
			}
			if st := s.Stats(); st.State != c.state || st.Err == "" {
				t.Errorf("%+v", st)
			}
			fail.Store(false)
			add(t, s, 3, 6)
			patience.WaitFor(t, "delivered", func() bool { return len(k.records()) == 6 })
			check(t, k.records(), 0, 6)
			if st := s.Stats(); st.State != StateOK {
				t.Errorf("%+v", st)
			}
			s.Close()
			again := &sink{}
			cfg.Consumers = []Consumer{{Name: "b", Consume: again.consume}}
			s = open(t, cfg)
			patience.WaitFor(t, "read again", func() bool { return len(again.records()) == 6 })
			check(t, again.records(), 0, 6)
			if st := s.Stats(); st.Damages != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestOnlyOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	if _, err := tryOpen(Config{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("second: %v", err)
	}
	s.Close()
	open(t, Config{Dir: dir})
}

func TestNumbersAreNotGivenTwice(t *testing.T) {
	dir, k := t.TempDir(), &sink{}
	c := Config{Dir: dir, Consumers: []Consumer{{Name: "a", Consume: k.consume}}}
	s := open(t, c)
	add(t, s, 0, 5)
	patience.WaitFor(t, "five", func() bool { return len(k.records()) == 5 })
	s.Close()
	for _, name := range journals(t, dir) {
		require.NoError(t, os.Remove(name))
	}
	s = open(t, c)
	add(t, s, 5, 6)
	patience.WaitFor(t, "the new one", func() bool { return len(k.records()) == 6 })
	check(t, k.records(), 0, 6)
}

func TestManyAtOnce(t *testing.T) {
	a, b := &sink{most: 7}, &sink{}
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, SegmentBytes: 20_000, KeepBytes: 5000, Checkpoint: time.Millisecond,
		Consumers: []Consumer{
			{Name: "a", Consume: a.consume}, {Name: "b", Consume: b.consume},
		}})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 250 {
				if err := s.Append(context.Background(), record(w*1000+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, k := range []*sink{a, b} {
		patience.WaitFor(t, "all", func() bool { return len(k.records()) >= 2000 })
		for i, r := range k.records() {
			if r.Seq != uint64(i+1) {
				t.Fatalf("record %d has number %d", i, r.Seq)
			}
		}
	}
	patience.WaitFor(t, "few segments", func() bool { return len(journals(t, dir)) <= 2 })
}

func BenchmarkAppend(b *testing.B) {
	k := &sink{}
	s := open(b, Config{Dir: b.TempDir(), Consumers: []Consumer{{Name: "a",
		Consume: func(_ context.Context, r []Record) (int, error) {
			return len(r), nil
		}}}})
	_ = k
	b.SetParallelism(500)
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Append(context.Background(), Record{Minion: "m", Load: make([]byte, 250)}); err != nil {
				b.Error(err)
			}
		}
	})
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/1000/float64(b.N), "cpu-µs/op")
	b.ReportMetric(1000*float64(s.Stats().Syncs)/float64(b.N), "fsyncs/1000")
}

// TestGather: what comes while a batch waits for more is consumed with it; what need not wait, or fails, is not asked
// again.
func TestGather(t *testing.T) {
	k, asked := &sink{}, atomic.Int64{}
	var s *Spool
	var batches []int
	ready := make(chan struct{})
	gather := func(batch []Record) time.Duration {
		<-ready
		if asked.Add(1) > 1 {
			return 0
		}
		add(t, s, len(batch), 5)
		return time.Nanosecond
	}
	s = open(t, Config{Dir: t.TempDir(), Consumers: []Consumer{{Name: "a", Gather: gather,
		Consume: func(ctx context.Context, b []Record) (int, error) {
			batches = append(batches, len(b))
			return k.consume(ctx, b)
		}}}})
	add(t, s, 0, 1)
	close(ready)
	patience.WaitFor(t, "all delivered", func() bool { return len(k.records()) == 5 })
	check(t, k.records(), 0, 5)
	add(t, s, 5, 6)
	patience.WaitFor(t, "the next one, too", func() bool { return len(k.records()) == 6 })
	require.NoError(t, s.Close())
	if !slices.Equal(batches, []int{5, 1}) || asked.Load() != 2 {
		t.Errorf("batches of %v, asked %d times", batches, asked.Load())
	}
}

// TestDiskHangs: what waits for a disk that does not answer is refused once, and so is what comes then. What the disk
// has taken is delivered when it answers, whoever brought it is told, and the journal goes on.
func TestDiskHangs(t *testing.T) {
	k, answers := &sink{}, make(chan struct{})
	s := open(t, Config{Dir: t.TempDir(), Hang: 20 * time.Millisecond, Consumers: []Consumer{{Name: "a", Consume: k.consume}},
		Disk: Disk{Sync: func(f *os.File) error {
			<-answers
			return f.Sync()
		}}})
	var mu sync.Mutex
	told, late := map[int][]error{}, map[int]int{}
	begin := func(n int) {
		done := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told[n] = append(told[n], err)
		}
		s.Go(record(n), done, func() {
			mu.Lock()
			late[n]++
			mu.Unlock()
			s.Go(record(n), done, nil) // none is taken before
		})
	}
	begin(0)
	patience.WaitFor(t, "the first is being written", func() bool { return s.Stats().Waiting == 0 })
	begin(1) // queued behind it, or refused
	patience.WaitFor(t, "both are refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told[0]) == 1 && len(told[1]) == 1
	})
	begin(2)
	for n := range 3 {
		if len(told[n]) != 1 || !errors.Is(told[n][0], ErrHangs) {
			t.Errorf("record %d: %v", n, told[n])
		}
	}
	if st := s.Stats(); st.State != StateFailing || st.Waiting != 0 || waitingBytes(s) != record0Bytes(t) {
		t.Errorf("%+v, %d bytes wait", st, waitingBytes(s))
	}
	close(answers)
	patience.WaitFor(t, "the journal takes records", func() bool { return s.Append(context.Background(), record(3)) == nil })
	patience.WaitFor(t, "delivered", func() bool { return len(k.records()) >= 2 })
	mu.Lock()
	defer mu.Unlock()
	if st := s.Stats(); st.State != StateOK || len(told[0]) != 2 || waitingBytes(s) != 0 {
		t.Errorf("%+v, told %v", st, told)
	}
	if late[0] != 1 || len(late) != 1 || !errors.Is(errors.Join(told[0][1:]...), ErrHangs) {
		t.Errorf("on disk after all: %v, told %v", late, told)
	}
}

func waitingBytes(s *Spool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.bytes
}

// record0Bytes is what the first record takes on disk.
func record0Bytes(t *testing.T) int64 {
	t.Helper()
	r := record(0)
	body, err := appendRecord(nil, &r)
	require.NoError(t, err)
	return int64(len(body)) + frameSize
}
