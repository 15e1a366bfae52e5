package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/trace"
)

const (
	// Path is where a node takes relayed requests on its peer port.
	Path = "/v1/relay"
	// PathSignIn is where it takes sign-ins. Nodes of before do not have it.
	PathSignIn = "/v1/relay/signin"
	// MaxBody bounds a relayed request and its reply.
	MaxBody = 64 << 20
	// MaxSignIn bounds a sign-in, relayed or not: a key, a token, some grains.
	MaxSignIn = 256 << 10
	// endsWithin is longer than any request is worked on.
	endsWithin = 2 * time.Minute
	// headerRemote tells the address the minion's connection came from.
	headerRemote = "Scd-Remote"
	// headerMaster says masterDown when a request is passed back because the node has no master that can take it. Nodes of
	// earlier releases do not say it.
	headerMaster = "Scd-Master"
	masterDown   = "down"
)

// ErrDropped says that the other node took the request and chose not to answer it.
var ErrDropped = errors.New("request dropped by the other node")

// ErrMasterDown says that the other node has no master that could take the request now.
var ErrMasterDown = errors.New("the other node's master is down")

// ErrBusy says that the other node did nothing with the request for another reason: it has too much to do, say.
var ErrBusy = errors.New("the other node does not take it")

// unsentError marks a request that certainly did not reach the other node's master.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() + " (not sent)" }
func (e *unsentError) Unwrap() error { return e.err }

// Unsent reports whether err means that the other node's master certainly has not seen the request, so that any request
// may be tried elsewhere.
func Unsent(err error) bool {
	_, ok := errors.AsType[*unsentError](err)
	return ok
}

// Client sends requests to other nodes.
type Client struct {
	http *http.Client

	mu       sync.Mutex
	inFlight map[node.ID]int
	replies  map[node.ID]*budget
}

// maxReplies is the bytes of replies of one node that are being read at a time: one of the largest, and others.
const maxReplies = 2 * MaxBody

// replyBudget returns what is left for replies of a node.
func (c *Client) replyBudget(to node.ID) *budget {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replies[to] == nil {
		c.replies[to] = &budget{limit: maxReplies}
	}
	return c.replies[to]
}

// InFlight tells how many requests to a node have no answer yet.
func (c *Client) InFlight(to node.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight[to]
}

func (c *Client) countInFlight(to node.ID, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[to] += n; c.inFlight[to] == 0 {
		delete(c.inFlight, to)
	}
}

// NewClient returns a client over the peer port's HTTP client, whose URL hosts are node ids.
func NewClient(c *http.Client) *Client {
	return &Client{http: c, inFlight: map[node.ID]int{}, replies: map[node.ID]*budget{}}
}

// Do hands the sealed request of a minion to node to and returns its master's reply.
func (c *Client) Do(ctx context.Context, to node.ID, body []byte, remote netip.AddrPort) ([]byte, error) {
	return c.sendRequest(ctx, to, Path, body, remote)
}

// SignIn hands a sign-in to node to and returns the reply that its own minions would get.
func (c *Client) SignIn(ctx context.Context, to node.ID, body []byte, remote netip.AddrPort) ([]byte, error) {
	return c.sendRequest(ctx, to, PathSignIn, body, remote)
}

func (c *Client) sendRequest(ctx context.Context, to node.ID, path string, body []byte,
	remote netip.AddrPort) ([]byte, error) {
	c.countInFlight(to, 1)
	defer c.countInFlight(to, -1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", to, err)
	}
	req.Header.Set(headerRemote, remote.String())
	if h := trace.Outgoing(ctx); h != "" {
		req.Header.Set(trace.Header, h)
	}
	connected := false
	watch := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	resp, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(ctx, watch)))
	if err != nil {
		err = fmt.Errorf("relay to %s: %w", to, err)
		if !connected {
			err = &unsentError{err}
		}
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent:
		return nil, fmt.Errorf("relay to %s: %w", to, ErrDropped)
	case http.StatusServiceUnavailable:
		if resp.Header.Get(headerMaster) == masterDown {
			return nil, &unsentError{fmt.Errorf("relay to %s: %w", to, ErrMasterDown)}
		}
		return nil, &unsentError{fmt.Errorf("relay to %s: %w", to, ErrBusy)}
	default:
		return nil, fmt.Errorf("relay to %s: %s", to, resp.Status)
	}
	reply, err := readReply(resp.Body, resp.ContentLength, c.replyBudget(to))
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", to, err)
	}
	return reply, nil
}

// Hands take what becomes of a relayed request. Exactly one of them is called, once, from any goroutine.
type Hands struct {
	Reply func([]byte)
	Drop  func() // it is not to be answered, or it was perhaps carried out
	// Pass says that nothing was done with it, nor will be: it is for its node to try another one. down: because the
	// master is.
	Pass func(down bool)
}

// Receiver serves what a peer relayed.
type Receiver interface {
	ServeRelayed(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to Hands)
	// ServeSignIn serves what came to PathSignIn, which is to be nothing but a sign-in.
	ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to Hands)
}

// serve is one of a Receiver's methods.
type serve func(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to Hands)

// end is what a Hands was told.
type end struct {
	status int
	reply  []byte // with http.StatusOK
	down   bool   // with http.StatusServiceUnavailable
}

func newHands(ends chan<- end) Hands {
	return Hands{
		Reply: func(b []byte) { ends <- end{status: http.StatusOK, reply: b} },
		Drop:  func() { ends <- end{status: http.StatusNoContent} },
		Pass:  func(down bool) { ends <- end{status: http.StatusServiceUnavailable, down: down} },
	}
}

// budget is the bytes of requests that may be held for peers at a time.
type budget struct {
	limit int64 // 0: any
	held  atomic.Int64
}

// takeBytes says whether there is room for n bytes; who is alone gets it in any case.
func (b *budget) takeBytes(n int64) bool {
	if held := b.held.Add(n); b.limit == 0 || held <= b.limit || held == n {
		return true
	}
	b.held.Add(-n)
	return false
}

// rooms are the budget of all peers together, and of each one half of it: who announces much and sends little does not
// keep the others out.
type rooms struct {
	all budget
	mu  sync.Mutex
	of  map[node.ID]*budget // members are few
}

func newRooms(limit int64) *rooms {
	return &rooms{all: budget{limit: limit}, of: map[node.ID]*budget{}}
}

// takeBytes says whether there is room for n bytes of a peer; give gives it back.
func (r *rooms) takeBytes(peer node.ID, n int64) (give func(), ok bool) {
	r.mu.Lock()
	own := r.of[peer]
	if own == nil {
		own = &budget{limit: (r.all.limit + 1) / 2}
		r.of[peer] = own
	}
	r.mu.Unlock()
	if !own.takeBytes(n) {
		return nil, false
	}
	if !r.all.takeBytes(n) {
		own.held.Add(-n)
		return nil, false
	}
	return func() { own.held.Add(-n); r.all.held.Add(-n) }, true
}

// Handler returns the peer port's handler for Path and PathSignIn. from tells which node a request came from. Requests
// that do not fit into limit bytes (0: any) besides those that are being served, or into half of it besides those of
// the same node, are refused, so that their node tries another one.
func Handler(rcv Receiver, from func(context.Context) (node.ID, bool), limit int64) http.Handler {
	room := newRooms(limit)
	mux := http.NewServeMux()
	mux.Handle(Path, newHandler(rcv.ServeRelayed, from, room, MaxBody))
	mux.Handle(PathSignIn, newHandler(rcv.ServeSignIn, from, room, MaxSignIn))
	return mux
}

func newHandler(serve serve, from func(context.Context) (node.ID, bool), room *rooms, largest int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := from(r.Context())
		if !ok || r.Method != http.MethodPost {
			http.Error(w, "not a member", http.StatusForbidden)
			return
		}
		size := r.ContentLength
		if size < 0 {
			http.Error(w, "the length is missing", http.StatusLengthRequired)
			return
		}
		if size > largest {
			http.Error(w, fmt.Sprintf("body of %d bytes exceeds the limit of %d", size, largest),
				http.StatusRequestEntityTooLarge)
			return
		}
		give, ok := room.takeBytes(peer, size)
		if !ok {
			http.Error(w, "too many requests are being served for other nodes", http.StatusServiceUnavailable)
			return
		}
		defer give()
		body, err := readAll(r.Body, r.ContentLength)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		// for logs, and how many strangers an address may send; zero when absent
		remote, _ := netip.ParseAddrPort(r.Header.Get(headerRemote))
		ends := make(chan end, 1)
		serve(trace.Incoming(r.Context(), r.Header.Get(trace.Header)), peer, remote, body, newHands(ends))
		select {
		case <-r.Context().Done(): // who asked has given up; the request takes its room until it has come to an end here
			select {
			case <-ends:
			case <-time.After(endsWithin):
			}
		case e := <-ends:
			if e.down {
				w.Header().Set(headerMaster, masterDown)
			}
			if e.status != http.StatusOK {
				w.WriteHeader(e.status)
				return
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.Itoa(len(e.reply)))
			_, _ = w.Write(e.reply) // a failed write is the caller's broken connection; it sees that itself
		}
	})
}

// readAll reads a body whose length was announced, in one allocation.
func readAll(r io.Reader, length int64) ([]byte, error) {
	buf := make([]byte, length)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	return buf, nil
}

// replyStep is how much room a reply takes at a time: what a node announces it may never send.
const replyStep = 256 << 10

// readReply reads a reply of at most MaxBody bytes into the room there is for replies of its node.
func readReply(r io.Reader, length int64, room *budget) (reply []byte, err error) {
	if length > MaxBody {
		return nil, fmt.Errorf("a reply of %d bytes exceeds the limit of %d", length, MaxBody)
	}
	var held int64
	defer func() { room.held.Add(-held) }()
	for end := false; !end; {
		step := int64(replyStep)
		if length >= 0 {
			step = min(step, length-int64(len(reply)))
		}
		if !room.takeBytes(step) {
			return nil, errors.New("too many bytes of replies from that node at a time")
		}
		held += step
		at := len(reply)
		reply = slices.Grow(reply, int(step))[:at+int(step)]
		n, err := io.ReadFull(r, reply[at:])
		reply = reply[:at+n]
		switch {
		case length < 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			end = true
		case err != nil:
			return nil, fmt.Errorf("read reply: %w", err)
		default:
			end = length >= 0 && int64(len(reply)) == length
		}
		if len(reply) > MaxBody {
			return nil, fmt.Errorf("a reply exceeds the limit of %d bytes", MaxBody)
		}
	}
	return reply, nil
}
