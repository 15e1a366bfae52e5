package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zmq4 "github.com/go-zeromq/zmq4"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

// eachSalt runs a test against the libzmq of every Salt in SALTCLUSTER_VENVS.
func eachSalt(t *testing.T, test func(t *testing.T, python string)) {
	t.Helper()
	dir := os.Getenv("SALTCLUSTER_VENVS")
	pythons, _ := filepath.Glob(filepath.Join(dir, "*", "bin", "python"))
	if dir == "" || len(pythons) == 0 {
		t.Skip("SALTCLUSTER_VENVS names no directory with <version>/bin/python: no libzmq to talk to")
	}
	for _, p := range pythons {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(p))), func(t *testing.T) { test(t, p) })
	}
}

// peer starts testdata/peer.py. Its exit status is the test's.
func peer(t *testing.T, python string, args ...string) (cmd *exec.Cmd, out *bufio.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, python, append([]string{filepath.Join("testdata", "peer.py")}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewReader(pipe)
}

func portOf(e addressed) string {
	_, port, _ := net.SplitHostPort(e.Addr()[0].String())
	return port
}

func TestSaltReq(t *testing.T) {
	eachSalt(t, func(t *testing.T, python string) {
		e := openReq(t, ReqConfig{}, func(r *Request) {
			if len(r.Body)%2 == 0 {
				r.Reply(r.Body)
				return
			}
			go r.Reply(r.Body)
		})
		cmd, _ := peer(t, python, "req", portOf(e))
		require.NoError(t, cmd.Wait())
	})
}

func TestSaltSub(t *testing.T) {
	eachSalt(t, func(t *testing.T, python string) {
		e := openPub(t, PubConfig{Heartbeat: 30 * time.Millisecond, HeartbeatTimeout: testTimeout})
		cmd, out := peer(t, python, "sub", portOf(e))
		if line, err := out.ReadString('\n'); err != nil || line != "subscribed\n" {
			t.Fatalf("%q, %v", line, err)
		}
		patience.WaitFor(t, "both are subscribed", func() bool { return e.Stats().Subscribers == 2 })
		patience.WaitFor(t, "the topics are indexed", func() bool { return indexed(e, "0123abcd") == 1 && indexed(e, "gone") == 0 })
		for i := range 500 {
			size := 20 + i*i%5000
			e.Publish(Publication{Body: append(fmt.Appendf(nil, "%d ", i), make([]byte, size)...)})
		}
		e.Publish(Publication{Body: []byte("for me"), Topics: []string{"0123abcd", "gone"}, TopicOnly: true})
		e.Publish(pub("end"))
		require.NoError(t, cmd.Wait())
	})
}

// TestSaltLeavesUnread has every Salt take what an old subscriber gets in place of a PING.
func TestSaltLeavesUnread(t *testing.T) {
	eachSalt(t, func(t *testing.T, python string) {
		cmd, _ := peer(t, python, "unread", hex.EncodeToString(unread))
		require.NoError(t, cmd.Wait())
	})
}

// TestSaltServers has our client talk to libzmq's ROUTER and XPUB, which send
// PINGs of their own.
func TestSaltServers(t *testing.T) {
	eachSalt(t, func(t *testing.T, python string) {
		connect := func(kind string, o zmtp.ClientOptions) *zmtp.Client {
			cmd, out := peer(t, python, kind)
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			port, err := out.ReadString('\n')
			require.NoError(t, err)
			c, err := net.Dial("tcp", "127.0.0.1:"+strings.TrimSpace(port))
			require.NoError(t, err)
			cl, err := zmtp.NewClient(context.Background(), c, o)
			require.NoError(t, err)
			t.Cleanup(func() { cl.Close() })
			return cl
		}
		r := connect("router", zmtp.ClientOptions{SocketType: "DEALER", Identity: "me", Heartbeat: 30 * time.Millisecond})
		alive := make(chan error, 1)
		go func() {
			p, err := r.ReadMessage()
			if err == nil && (len(p) != 2 || len(p[1]) != 1<<20) {
				err = fmt.Errorf("got %d parts", len(p))
			}
			alive <- err
		}()
		select { // longer than both sides' heartbeat timeouts
		case err := <-alive:
			t.Fatal(err)
		case <-time.After(800 * time.Millisecond):
		}
		require.NoError(t, r.WriteMessage(nil, make([]byte, 1<<20)))
		require.NoError(t, <-alive)
		s := connect("pub", zmtp.ClientOptions{SocketType: "SUB"})
		require.NoError(t, s.Subscribe([]byte("top")))
		next(t, s, "topx", "hello")
	})
}

// TestForeignReq and TestForeignSub talk to go-zeromq/zmq4, a ZMTP 3.0 peer.
func TestForeignReq(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	for _, kind := range []string{"REQ", "DEALER"} {
		s := zmq4.NewReq(context.Background())
		want := []string{"hello"}
		msg := zmq4.NewMsgString("hello")
		if kind == "DEALER" {
			s = zmq4.NewDealer(context.Background())
			msg, want = zmq4.NewMsgFromString([]string{"hop", "", "hello"}), []string{"hop", "", "hello"}
		}
		require.NoError(t, s.Dial("tcp://"+e.Addr()[0].String()))
		for range 3 {
			require.NoError(t, s.Send(msg))
			got, err := s.Recv()
			if err != nil || fmt.Sprintf("%q", got.Frames) != fmt.Sprintf("%q", want) {
				t.Fatalf("%s got %q, %v", kind, got.Frames, err)
			}
		}
		_ = s.Close()
	}
}

func TestForeignSub(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: 10 * time.Millisecond, HeartbeatTimeout: 300 * time.Millisecond})
	s := zmq4.NewSub(context.Background())
	defer s.Close()
	require.NoError(t, s.Dial("tcp://"+e.Addr()[0].String()))
	require.NoError(t, s.SetOption(zmq4.OptionSubscribe, ""))
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
	recv := func() string {
		m, err := s.Recv()
		require.NoError(t, err)
		return string(bytes.Join(m.Frames, nil))
	}
	// it answers no PING, and is sent none
	for until := time.Now().Add(500 * time.Millisecond); time.Now().Before(until); {
		if got := recv(); got != string(unread) {
			t.Fatalf("a sign of life is %q", got)
		}
	}
	for i := range 50 {
		e.Publish(pub(fmt.Sprint(i)))
	}
	for i := range 50 {
		got := recv()
		for got == string(unread) {
			got = recv()
		}
		if got != fmt.Sprint(i) {
			t.Fatalf("message %d: %q", i, got)
		}
	}
}
