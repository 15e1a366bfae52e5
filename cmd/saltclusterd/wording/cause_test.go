package wording

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestCause(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 4505},
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"connection refused": &url.Error{Op: "Get", URL: "http://127.0.0.1:4580/metrics", Err: refused},
		"permission denied":  fmt.Errorf("read it: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}),
		"no such host":       &net.DNSError{Err: "no such host", Name: "m2", Server: "10.0.0.1:53"},
		"it is full":         errors.New("it is full"),
	} {
		if got := Cause(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
