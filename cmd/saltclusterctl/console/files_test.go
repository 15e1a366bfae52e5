package console

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func pipeIn(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestOpenReplaced(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "nothing", filepath.Join(dir, "empty"): "nothing", filepath.Join(dir, "text"): "a file",
		dir: "refused", pipeIn(t): "refused", "/dev/zero": "refused",
	} {
		f, err := OpenReplaced(path)
		got := "nothing"
		switch {
		case err != nil:
			got = "refused"
		case f != nil:
			got = "a file"
			_ = f.Close()
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", path, got, err, want)
		}
	}
}

// A pipe is read once somebody writes to it, and waiting for that can be ended.
func TestOpenInput_Pipe(t *testing.T) {
	path := pipeIn(t)
	go func() { _ = os.WriteFile(path, []byte("text"), 0o600) }()
	f, err := OpenInput(t.Context(), path)
	require.NoError(t, err)
	if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	check.NoError(t, f.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path = pipeIn(t)
	if _, err := OpenInput(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe that nobody writes to: %v", err)
	}
	writer, err := os.OpenFile(path, os.O_RDWR, 0) // so that nothing waits for one when the test has ended
	require.NoError(t, err)
	check.NoError(t, writer.Close())
}

func TestInterruptible(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	in := Interruptible(ctx, r)
	go func() { _, _ = w.Write([]byte("yes")) }()
	var text [3]byte
	if _, err := io.ReadFull(in, text[:]); err != nil || string(text[:]) != "yes" {
		t.Errorf("%q, %v", text, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := in.Read(text[:])
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
