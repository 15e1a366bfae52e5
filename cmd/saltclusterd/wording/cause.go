package wording

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
)

// Cause returns the reason in an error of the network or of a file, without the call, the address and the path that Go
// puts before it: what is said around it names them.
func Cause(err error) string {
	for {
		var inner error
		if e, ok := errors.AsType[*net.DNSError](err); ok {
			return e.Err
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			inner = e.Err
		} else if e, ok := errors.AsType[*net.OpError](err); ok {
			inner = e.Err
		} else if e, ok := errors.AsType[*fs.PathError](err); ok {
			inner = e.Err
		} else if e, ok := errors.AsType[*os.SyscallError](err); ok {
			inner = e.Err
		}
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
