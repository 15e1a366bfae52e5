package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

// Whoever may not read a file is told so, and not of a mistake in it.
func TestFindings_Denied(t *testing.T) {
	dir := t.TempDir()
	main, secret := filepath.Join(dir, "saltclusterd"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{main: "id: m1\ncluster_id: c\ncluster_secret_file: " + secret + "\n", secret: "x\n",
		filepath.Join(main+".d", "a.conf"): "nonsense: true\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if _, err := Load(main); deniedFile(t, err) != "" {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, above := range []string{filepath.Dir(dir), dir} { // that user has to get there
		require.NoError(t, os.Chmod(above, 0o755))
	}
	for _, path := range []string{main, main + ".d", filepath.Join(main+".d", "a.conf"), secret} {
		before, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, 0))
		err = asOtherUser(t, func() error { _, err := Load(main); return err })
		if got := deniedFile(t, err); got == "" {
			t.Errorf("%s is closed: %v", path, err)
		}
		require.NoError(t, os.Chmod(path, before.Mode()))
	}
}

// deniedFile is the message of Findings.Denied; empty when it has none.
func deniedFile(t *testing.T, err error) string {
	t.Helper()
	found, _ := errors.AsType[Findings](err)
	if f := found.Denied(); f != nil {
		return f.String()
	}
	return ""
}

// asOtherUser reads files as a user without rights, on this thread alone.
func asOtherUser(t *testing.T, read func() error) error {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	return read()
}
