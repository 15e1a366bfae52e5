package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// The API's place and version. Version grows when a verb or field is added;
// a change that old clients could not bear gets a new prefix.
const (
	Prefix = "/v1"
	// TimeoutHeader tells how long the client waits for the answer, as time.Duration writes it.
	TimeoutHeader = "Saltclusterctl-Patience"
	APIVersion    = 1

	maxReply = 16 << 20 // bytes of one JSON answer
)

// Client talks to one daemon. It is safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client of the unix socket at path; nothing is opened
// before the first call.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{socket: path, http: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConns: 2}}}
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version asks who answers.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return getJSON[Version](ctx, c, "/version", nil)
}

// Status asks for everything that fits on one screen.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return getJSON[Status](ctx, c, "/status", nil)
}

// Members asks for the roster as that node knows it.
func (c *Client) Members(ctx context.Context) (Members, error) {
	return getJSON[Members](ctx, c, "/members", nil)
}

// Config asks for the options the daemon runs with.
func (c *Client) Config(ctx context.Context) (Config, error) {
	return getJSON[Config](ctx, c, "/config", nil)
}

// RingInfo asks for the ring and, when q names a key, also for the owner of the key.
func (c *Client) RingInfo(ctx context.Context, q RingQuery) (RingInfo, error) {
	if err := q.Validate(); err != nil {
		return RingInfo{}, err
	}
	query := url.Values{}
	if q.Minion != "" {
		query.Set("minion", q.Minion)
	}
	if q.JID != "" {
		query.Set("jid", q.JID)
	}
	return getJSON[RingInfo](ctx, c, "/ring", query)
}

func getJSON[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return exchangeJSON[T](ctx, c, http.MethodGet, path, query, nil)
}

// sendJSON asks for something to be done that takes no time.
func sendJSON[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	return exchangeJSON[T](ctx, c, method, path, nil, body)
}

func exchangeJSON[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, error) {
	var out T
	resp, err := c.doJSON(ctx, method, path, query, body)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&out); err != nil {
		return out, c.explainError(ctx, fmt.Errorf("read the answer: %w", err))
	}
	return out, nil
}

// doJSON sends one request and returns a response whose status is 200.
func (c *Client) doJSON(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		r = bytes.NewReader(data)
	}
	return c.sendBody(ctx, method, path, query, r)
}

// sendBody is doJSON with a body that is sent as it is.
func (c *Client) sendBody(ctx context.Context, method, path string, query url.Values, r io.Reader) (*http.Response,
	error) {
	u := url.URL{Scheme: "http", Host: "saltclusterd", Path: Prefix + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), r)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if end, ok := ctx.Deadline(); ok {
		req.Header.Set(TimeoutHeader, time.Until(end).String())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explainError(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readRefusal(resp)
	}
	return resp, nil
}

// readRefusal reads an error answer.
func readRefusal(resp *http.Response) error {
	var e Error
	err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&e)
	if err != nil || e.Message == "" {
		return Errorf(CodeInternal, "is another program using this socket?", "unexpected answer %q: not that of an admin API",
			resp.Status)
	}
	return &e
}

// explainError turns a transport failure into what an operator can use.
func (c *Client) explainError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Errorf(CodeTimeout, "see its log: journalctl -u saltclusterd",
			"saltclusterd did not answer in time on %s", c.socket)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("asking saltclusterd: %w", context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	out := &UnreachableError{Socket: c.socket, Err: err,
		Hint: "systemctl status saltclusterd; journalctl -u saltclusterd -n 50 says why it ended. Until it runs again, salt on this host reaches no minion"}
	switch {
	case errors.Is(err, fs.ErrPermission):
		out.Hint = "run it as root, as saltclusterd's own user, or as a member of the group in its option admin_group (admin_group: salt), which is not set by default"
	case errors.Is(err, syscall.EINVAL):
		out.Hint = "the path of a unix socket has at most 107 characters"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		out.Hint = "it closed the connection; is it stopping?"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		out.Err = op.Err
	}
	if sys, ok := errors.AsType[syscall.Errno](err); ok {
		out.Err = sys
	}
	return out
}
