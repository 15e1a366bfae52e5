package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIsFullError(t *testing.T) {
	for _, tc := range []struct {
		err            error
		full, readOnly bool
	}{
		{nil, false, false},
		{unix.EIO, false, false},
		{unix.ENOSPC, true, false},
		{&fs.PathError{Op: "write", Path: "mine.p", Err: unix.EDQUOT}, true, false},
		{unix.EROFS, false, true},
	} {
		if full, readOnly := IsFullError(tc.err), IsReadOnlyError(tc.err); full != tc.full || readOnly != tc.readOnly {
			t.Errorf("%v: full %v, read-only %v", tc.err, full, readOnly)
		}
	}
}

func TestIsDiskError(t *testing.T) {
	for _, tc := range []struct {
		err         error
		disk, whole bool
	}{
		{nil, false, false},
		{errors.New("it is wrong"), false, false},
		{fs.ErrNotExist, false, false},
		{unix.EACCES, false, false},
		{unix.EMFILE, false, false},
		{unix.ENAMETOOLONG, false, false},
		{unix.ENOSPC, true, true},
		{unix.EDQUOT, true, true},
		{unix.EROFS, true, true},
		{unix.ENODEV, true, true},
		{unix.ENXIO, true, true},
		{unix.ENOTCONN, true, true},
		{unix.ESHUTDOWN, true, true},
		{unix.EHOSTDOWN, true, true},
		{unix.EIO, true, false},
		{unix.ETIMEDOUT, true, false},
		{unix.EREMOTEIO, true, false},
		{unix.EBADMSG, true, false},
		{context.DeadlineExceeded, false, false},
		{os.ErrDeadlineExceeded, false, false},
		{unix.EUCLEAN, true, false},
		{unix.ESTALE, true, false},
		{fmt.Errorf("store it: %w", &fs.PathError{Op: "open", Path: "mine.p", Err: unix.EUCLEAN}), true, false},
	} {
		if disk, whole := IsDiskError(tc.err), IsWholeDiskError(tc.err); disk != tc.disk || whole != tc.whole {
			t.Errorf("%v: a disk error %v, of all of it %v", tc.err, disk, whole)
		}
	}
}
