package jobcache_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/spool"
)

// envChild makes the test's own binary the process that is killed; its value is the round.
const envChild = "JOBCACHE_TEST_CHILD"

func TestMain(m *testing.M) {
	if round := os.Getenv(envChild); round != "" {
		if err := child(os.Getenv("JOBCACHE_TEST_DIR"), round); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// journal is the way from an acknowledgement to the job cache, as the daemon goes it.
func journal(dir string) (*spool.Spool, *jobcache.Cache, error) {
	c, err := jobcache.New(jobcache.Config{
		Options: stockOptions(), Major: 3008, CacheDir: filepath.Join(dir, "cache"), UID: -1, GID: -1, Keys: &testKeys{},
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

// child appends returns for ever and prints each minion's id once it may be acknowledged.
func child(dir, round string) error {
	s, _, err := journal(dir)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var print sync.Mutex
	for w := range 20 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("r%s-w%d-%d", round, w, i)
				load := wire(panicker{}, ret(testJID, id, "return", strings.Repeat(id, 20), "out", "txt"))
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
	return nil
}

// panicker stands in for a test where there is none.
type panicker struct{ testing.TB }

func (panicker) Helper() {}

// TestKilledAnywhere kills the process that acknowledges returns, again and again: at the end every return that was
// acknowledged is in the job cache, whole.
func TestKilledAnywhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	var acked []string
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envChild, round), "JOBCACHE_TEST_DIR="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		kill := 20 + rand.IntN(200)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if acked = append(acked, lines.Text()); kill == 0 {
				_ = cmd.Process.Kill()
			}
			kill--
		}
		_ = cmd.Wait()
	}
	s, c, err := journal(dir)
	if err != nil {
		t.Fatal(err)
	}
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
