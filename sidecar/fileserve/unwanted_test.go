package fileserve_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// TestNobodyWantsTheHash: a hash that takes long is not made to its end for nobody: who ends waits for whoever makes it, and there are few
// who may hash at a time. As long as one of those who want it waits it is made.
func TestNobodyWantsTheHash(t *testing.T) {
	s := newSite(t, 1024)
	s.put("huge", "")
	if err := os.Truncate(filepath.Join(s.root, "huge"), 256<<30); err != nil { // minutes
		t.Skip(err)
	}
	load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "_file_hash", "saltenv": "base", "path": "huge"}, saltwire.Wire)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- s.Answer(ctx, "_file_hash", "m", load, func([]byte) {}) }()
		return ended
	}
	ctx1, cancel1 := context.WithCancel(t.Context())
	ctx2, cancel2 := context.WithCancel(t.Context())
	defer cancel2()
	first := ask(ctx1)
	time.Sleep(50 * time.Millisecond) // so that it is the one who makes it; if not, less is shown
	second := ask(ctx2)
	time.Sleep(50 * time.Millisecond) // and this one waits for it
	cancel1()
	select {
	case err := <-second:
		t.Errorf("not made any more although it is waited for: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	cancel2()
	for _, ended := range []<-chan error{second, first} {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("answered")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it is made for nobody")
		}
	}
}
