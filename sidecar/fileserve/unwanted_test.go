package fileserve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/saltwire"
)

// TestHashThatTakesLong: who waits for one gives up when he wants to, and it is made all the same, for he asks again.
// It ends with the file server, which is closed after all who asked have ended.
func TestHashThatTakesLong(t *testing.T) {
	s := newSite(t, 1024)
	s.put("huge", "")
	if err := os.Truncate(filepath.Join(s.root, "huge"), 256<<30); err != nil { // minutes
		t.Skip(err)
	}
	load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "_file_hash", "saltenv": "base", "path": "huge"},
		saltwire.Wire)
	require.NoError(t, err)
	ask := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- s.Answer(ctx, "_file_hash", "m", load, func([]byte) {}) }()
		return ended
	}
	ends := func(what string, ended <-chan error, want error) {
		t.Helper()
		select {
		case err := <-ended:
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waits", what)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx)
	second := ask(t.Context())
	cancel()
	ends("who gave up", first, context.Canceled)
	select {
	case err := <-second:
		t.Fatalf("not made any more although it is waited for: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	ends("the file server", closed, nil)
	ends("who waited", second, fileserve.ErrForward)
}
