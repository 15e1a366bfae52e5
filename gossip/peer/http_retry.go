package peer

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// retryTransport sends a request once more, over a new connection, when one that was used before turns out to be
// broken: the peer has cut it, because a certificate was replaced say, and this node has not seen that yet. net/http
// does so for HTTP/1 only.
type retryTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var reused, written atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { reused.Store(c.Reused) },
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err == nil {
				written.Store(true)
			}
		},
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err == nil || !reused.Load() || ctx.Err() != nil || !mayRepeat(req, err, written.Load()) {
		return resp, err
	}
	again, unable := copyRequest(req)
	if unable != nil {
		return nil, err
	}
	return t.next.RoundTrip(again)
}

// CloseIdleConnections is what http.Client calls.
func (t *retryTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// mayRepeat says whether a request that failed on a connection does nothing twice. One whose end was not written was
// not done: the peer has no whole request. Of others only those that change nothing are repeated: what could not be
// written may also be the answer to a ping, while the peer works on the request.
func mayRepeat(req *http.Request, err error, written bool) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "write" && !written {
		return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
	}
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// copyRequest returns a request with the body from its beginning. Errors: the body cannot be had again.
func copyRequest(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again, nil
	}
	if req.GetBody == nil {
		return nil, errors.ErrUnsupported
	}
	var err error
	again.Body, err = req.GetBody()
	return again, err
}
