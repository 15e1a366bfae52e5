package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// sink is a consumer that remembers what it was given.
type sink struct {
	mu   sync.Mutex
	got  []Record
	fail error // returned instead of taking anything
	most int   // records taken at once, 0: all
}

func (s *sink) consume(_ context.Context, batch []Record) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return 0, s.fail
	}
	n := len(batch)
	if s.most > 0 {
		n = min(n, s.most)
	}
	s.got = append(s.got, batch[:n]...)
	return n, nil
}

func (s *sink) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *sink) records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.got...)
}

func open(t testing.TB, c Config) *Spool {
	t.Helper()
	s, err := tryOpen(c)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func tryOpen(c Config) (*Spool, error) {
	if c.RetryMin == 0 {
		c.RetryMin, c.RetryMax = time.Millisecond, 5*time.Millisecond
	}
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	return s, s.Open(context.Background())
}

func record(i int) Record {
	return Record{
		Kind: 1, Received: time.Unix(1790000000, int64(i)), Minion: fmt.Sprintf("minion%d", i), JID: "20261121040506789012",
		From: "node2", Load: []byte(fmt.Sprintf("load %d of some length %*d", i, i%40, i)),
	}
}

func add(t testing.TB, s *Spool, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, s.Append(context.Background(), record(i)))
	}
}

// check compares records with the ones add made, from number from on.
func check(t testing.TB, got []Record, from, to int) {
	t.Helper()
	if len(got) != to-from {
		t.Fatalf("%d records, want %d", len(got), to-from)
	}
	for i, r := range got {
		want := record(from + i)
		if r.Seq != uint64(from+i+1) || r.Minion != want.Minion || string(r.Load) != string(want.Load) ||
			!r.Received.Equal(want.Received) || r.From != want.From || r.JID != want.JID || r.Kind != want.Kind {
			t.Fatalf("record %d is %+v", from+i, r)
		}
	}
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(to, 0o700), filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, d.Name()), text, 0o600)
	}))
	require.NoError(t, err)
}

// journals lists the segment files.
func journals(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	require.NoError(t, err)
	return names
}
