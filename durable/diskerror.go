package durable

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

var (
	noRoom = []unix.Errno{unix.ENOSPC, unix.EDQUOT}
	// wholeDisk are errors of a disk, or of a file system, that takes nothing anywhere.
	wholeDisk = append([]unix.Errno{
		unix.EROFS, unix.ENODEV, unix.ENXIO,
		unix.ENOTCONN,  // the program behind a FUSE mount has ended
		unix.ESHUTDOWN, // a forced unmount, or a client that a Ceph cluster has excluded
		unix.EHOSTDOWN, // an SMB server does not answer
	}, noRoom...)
	// onePlace are errors that may be those of one directory.
	onePlace = []unix.Errno{
		unix.EIO, unix.EUCLEAN, unix.ESTALE,
		unix.ETIMEDOUT, // a soft NFS mount whose server does not answer
		unix.EREMOTEIO, // a server of NFS, or one that FUSE asks, has failed
		unix.EBADMSG,   // ext4 and f2fs: a checksum that does not match
	}
)

// IsDiskError says whether an error means that a disk takes nothing now, rather than that something is wrong with what
// was to be written: it is full or over quota, read-only, damaged or gone, or the server of a share has forgotten the
// handle or does not answer. Another program on this host would fail in the same way. It is for errors of files: some
// of these are errors of connections as well.
func IsDiskError(err error) bool { return isAny(err, wholeDisk) || isAny(err, onePlace) }

// IsWholeDiskError says whether such an error is certainly not that of one directory.
func IsWholeDiskError(err error) bool { return isAny(err, wholeDisk) }

// IsFullError says whether such an error means that a disk is full, or a quota used up.
func IsFullError(err error) bool { return isAny(err, noRoom) }

// IsReadOnlyError says whether such an error means that nothing may be written at all.
func IsReadOnlyError(err error) bool { return errors.Is(err, unix.EROFS) }

func isAny(err error, of []unix.Errno) bool {
	return slices.ContainsFunc(of, func(is unix.Errno) bool { return errors.Is(err, is) })
}
