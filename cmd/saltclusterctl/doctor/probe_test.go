package doctor

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	zmq4 "github.com/go-zeromq/zmq4"

	"saltclusterd/integration/require"
)

// What is no ZeroMQ is told in a sentence, not in that of the library which has tried.
func TestProbeOfAnotherProtocol(t *testing.T) {
	for says, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n" + strings.Repeat(" ",
			64): "accepts connections, but does not speak ZeroMQ: it uses another protocol",
		"": "accepts connections, but does not speak ZeroMQ: the connection was closed",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.ReadFull(c, make([]byte, 64)) // its greeting, so that closing is no reset
			_, _ = io.WriteString(c, says)
		}()
		_, err = openClient(t.Context(), l.Addr().String(), zmq4.Req)
		if !errors.Is(err, errHandshake) {
			t.Errorf("%q: %v", says, err)
		} else if got := (Target{Name: "m1"}).refusalFinding("", err, "").What; got != want {
			t.Errorf("%q: %s", says, got)
		}
		l.Close()
		<-done
	}
}
