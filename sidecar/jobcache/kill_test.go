package jobcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/killtest"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/spool"
)

// journal is the way from an acknowledgement to the job cache, as the daemon goes it.
func journal(dir string) (*spool.Spool, *jobcache.Cache, error) {
	c, err := jobcache.New(jobcache.Config{
		Options: stockOptions(), Version: localmaster.Version{Major: 3008}, CacheDir: filepath.Join(dir, "cache"), UID: -1,
		GID: -1, Keys: &testKeys{},
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := spool.New(spool.Config{
		Dir: filepath.Join(dir, "spool"), SegmentBytes: 50_000, Checkpoint: 20 * time.Millisecond,
		Consumers: []spool.Consumer{{Name: "files", Consume: func(ctx context.Context, batch []spool.Record) (int, error) {
			for i, r := range batch {
				p, err := c.Plan(r.Load, jobcache.Facts{Received: r.Received, JID: r.JID})
				if err == nil {
					err = c.Apply(ctx, p)
				}
				if err != nil {
					return i, err
				}
			}
			return len(batch), nil
		}}},
	})
	if err != nil {
		return nil, nil, err
	}
	return s, c, s.Open(context.Background())
}

// TestKilledProcess appends returns for ever and prints each minion's id once it may be acknowledged.
func TestKilledProcess(t *testing.T) {
	s, _, err := journal(killtest.Child(t))
	require.NoError(t, err)
	var wg sync.WaitGroup
	var print sync.Mutex
	for w := range 20 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("p%d-w%d-%d", os.Getpid(), w, i)
				load := wire(t, ret(testJID, id, "return", strings.Repeat(id, 20), "out", "txt"))
				r := spool.Record{Minion: id, Received: time.Now(), Load: load}
				if err := s.Append(context.Background(), r); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				print.Lock()
				fmt.Println(id)
				print.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestKilledAnywhere kills the process that acknowledges returns, again and again: at the end every return that was
// acknowledged is in the job cache, whole.
func TestKilledAnywhere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cache"), 0o755))
	var acked []string
	for range 8 {
		killtest.Kill(t, "TestKilledProcess", dir, 20, 220, func(id string) bool { acked = append(acked, id); return true })
	}
	s, c, err := journal(dir)
	require.NoError(t, err)
	defer c.Close()
	defer s.Close()
	for end := time.Now().Add(30 * time.Second); s.Stats().Consumers[0].Pending > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not drained: %+v", s.Stats())
		}
	}
	job := jobDir(t, filepath.Join(dir, "cache"))
	for _, id := range acked {
		text, err := os.ReadFile(filepath.Join(job, id, "return.p"))
		if err != nil || !strings.Contains(string(text), strings.Repeat(id, 20)) {
			t.Errorf("%s: acknowledged, but return.p is %.40q, %v", id, text, err)
		}
		if text, err := os.ReadFile(filepath.Join(job, id, "out.p")); err != nil || string(text) != "\xa3txt" {
			t.Errorf("%s: out.p is %q, %v", id, text, err)
		}
	}
	if st := s.Stats(); st.Lost != 0 {
		t.Errorf("%+v", st)
	}
	t.Logf("%d acknowledged returns over 8 kills", len(acked))
}
