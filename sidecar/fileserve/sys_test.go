package fileserve_test

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// asNobody does something while this process, all of its threads, is an account without rights; as it is, where this is
// no root.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	if err := syscall.Setresuid(-1, nobody, -1); err != nil {
		t.Skip(err)
	}
	defer func() {
		require.NoError(t, syscall.Setresuid(-1, 0, -1))
	}()
	do()
}
