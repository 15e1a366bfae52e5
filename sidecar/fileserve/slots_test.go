package fileserve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// TestSlots_AllDiskAccess: each request that waits for a disk holds a thread, of which a process has ten thousand. So
// whatever looks at a disk takes a slot first, also for lists in memory and for files that are to be held open.
func TestSlots_AllDiskAccess(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "large"), []byte(strings.Repeat("x", 100)), 0o644))
	s := New(Config{SlotTimeout: 10 * time.Millisecond})
	defer s.Close()
	set := &Settings{Alone: true, Buffer: 10, ListTime: time.Minute, ListDir: t.TempDir(),
		Roots: map[string][]string{"base": {root}}}
	s.Use(set, "")
	ask := func() error {
		load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "_file_list", "saltenv": "base"}, saltwire.Wire)
		require.NoError(t, err)
		return s.Answer(t.Context(), "_file_list", "m", load, func([]byte) {})
	}
	require.NoError(t, ask())
	f, err := s.searchFile(t.Context(), set, "large", "base")
	if err != nil || f == nil {
		t.Fatal(f, err)
	}
	for range cap(s.disk) {
		s.disk <- struct{}{}
	}
	if err := ask(); !errors.Is(err, ErrForward) {
		t.Errorf("a list from memory: %v", err)
	}
	if p := s.transfers.beginTransfer(transferKey{"m", "base", "large"}, f, time.Now(), true); p != nil {
		t.Error("a file is opened to be held")
	}
}
