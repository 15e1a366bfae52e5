package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	zmq4 "github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/saltwire"
)

const probeTimeout = 5 * time.Second

// large is more than fits into one packet of any network, jumbo frames included: who answers small requests only has a
// problem with the MTU.
const large = 20_000

// Target is a place where minions would go.
type Target struct {
	Name        string // of the node, or what the operator called it
	Host        string
	PublishPort int
	RetPort     int
}

// Probe talks to all targets as a minion would, from here.
func Probe(ctx context.Context, targets []Target) []Finding {
	found := make([][]Finding, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() { found[i] = []Finding{t.probePublish(ctx), t.probeRequest(ctx)} })
	}
	wg.Wait()
	var out []Finding
	for _, f := range found {
		out = append(out, f...)
	}
	return out
}

// probePublish subscribes: the handshake says that a publisher of ZeroMQ is there.
func (t Target) probePublish(ctx context.Context) Finding {
	where := net.JoinHostPort(t.Host, strconv.Itoa(t.PublishPort))
	c, err := openClient(ctx, where, zmq4.Sub)
	if err != nil {
		return t.refusalFinding(where, err, "minions there get no publications: Minion did not return")
	}
	c.Close()
	return ok("probe", t.Name+" "+where, "takes subscribers")
}

// probeRequest sends a ping, which saltclusterd answers with its own text, as a bare salt-master does: first a small
// one, then a large one. Whether the master behind it works is what health and status say.
func (t Target) probeRequest(ctx context.Context) Finding {
	where := net.JoinHostPort(t.Host, strconv.Itoa(t.RetPort))
	c, err := openClient(ctx, where, zmq4.Req)
	if err != nil {
		return t.refusalFinding(where, err, "minions there can neither sign in nor return: Salt request timed out, Minion did not return")
	}
	defer c.Close()
	begun := time.Now()
	if err := sendEcho(ctx, c, ""); err != nil {
		return Finding{
			Check: "probe", Level: Fail, Where: t.Name + " " + where,
			What: "accepts connections but does not answer requests: " + errorText(err),
			Why:  "minions get no answer: Salt request timed out, Unable to sign_in to master",
			Next: "saltclusterctl status on " + t.Name + "; behind a load balancer: saltclusterctl doctor --haproxy FILE",
		}
	}
	took := time.Since(begun)
	if err := sendEcho(ctx, c, strings.Repeat("x", large)); err != nil {
		return Finding{
			Check: "probe", Level: Fail, Where: t.Name + " " + where,
			What: fmt.Sprintf("answers small requests, but none of %d bytes: %s", large, errorText(err)),
			Why:  "full-size packets are lost on the path (MTU): test.ping works, but states and large returns do not (Minion did not return, Salt request timed out)",
			Next: "compare the MTU of all interfaces on the path (ip link), and allow ICMP type 3 code 4; try: ping -M do -s 1472 " + t.Host,
		}
	}
	return ok("probe", t.Name+" "+where, fmt.Sprintf("answers requests in %s", took.Round(100*time.Microsecond)))
}

func (t Target) refusalFinding(where string, err error, why string) Finding {
	f := Finding{Check: "probe", Level: Fail, Where: t.Name + " " + where, Why: why}
	switch {
	case errors.Is(err, errHandshake):
		f.What = "accepts connections, but does not speak ZeroMQ: " + errorText(err)
		f.Next = "check what listens there: ss -ltnp on that host; behind HAProxy: saltclusterctl doctor --haproxy FILE (mode http? proxy_protocol?)"
	default:
		f.What = "cannot be reached: " + errorText(err)
		f.Next = "saltclusterctl status on " + t.Name + "; check for a firewall in between: nc -vz " + t.Host
	}
	return f
}

var errHandshake = errors.New("no handshake")

// client is a connection that has agreed on the protocol.
type client struct {
	*zmq4.Conn
	raw net.Conn
}

// openClient connects, and agrees on the protocol.
func openClient(ctx context.Context, addr string, kind zmq4.SocketType) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })()
	c, err := zmq4.Open(newBounded(raw), null.Security(), kind, nil, false, nil)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	return &client{c, raw}, nil
}

// sendEcho sends a ping with a filling and compares what comes back.
func sendEcho(ctx context.Context, c *client, filling string) error {
	until := time.Now().Add(probeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	_ = c.raw.SetDeadline(until)
	load := saltwire.AppendMapHeader(nil, 2)
	load = saltwire.AppendRaw(saltwire.AppendRaw(load, "cmd"), "ping")
	load = saltwire.AppendRaw(saltwire.AppendRaw(load, "filling"), filling)
	body := saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3,
		HasVersion: true})
	if err := c.SendMsg(zmq4.NewMsgFrom(nil, body)); err != nil {
		return err
	}
	for range 16 { // answers and, in between, commands
		m, err := c.RecvMsg()
		if err != nil {
			return err
		}
		if m.Type != zmq4.CmdMsg {
			if !bytes.Contains(m.Bytes(), []byte("ping")) {
				return errors.New("it gives an unexpected answer: check that this is a salt-master's port")
			}
			return nil
		}
	}
	return errors.New("it sends commands instead of an answer")
}

// errorText is an error without the library's own preface.
func errorText(err error) string {
	if t, okay := errors.AsType[net.Error](err); okay && t.Timeout() {
		return "no answer in time"
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err,
		syscall.EPIPE):
		return "the connection was closed"
	case errors.Is(err, errHandshake):
		return "it uses another protocol"
	}
	return strings.ReplaceAll(wording.Cause(err), "zmq4: ", "")
}
