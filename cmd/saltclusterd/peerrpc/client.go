package peerrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"saltclusterd/gossip/node"
)

// Client makes calls to members.
type Client struct {
	HTTP *http.Client // its requests to https://<node id> reach that member
}

// silenceError is that a member did not answer a call. Operators read it in the status.
type silenceError struct {
	to  node.ID
	err error
}

func (e *silenceError) Error() string {
	return fmt.Sprintf("%s does not answer: %s", e.to, Reason(e.err))
}

func (e *silenceError) Unwrap() error { return e.err }

// Do sends body to a path of a member and returns the answer, which is cut off at limit bytes. Any status but 200 is an
// error.
func (c Client) Do(ctx context.Context, method string, to node.ID, path string, body []byte,
	limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, &silenceError{to, err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("call %s of %s: %w", path, to, &statusError{resp.StatusCode, fmt.Sprintf("%s: %.200s", resp.Status,
			bytes.TrimSpace(answer))})
	}
	return answer, nil
}

// statusError is the answer of a member with another status than 200. It is no Error, so that a handler which asks
// another member does not pass that member's status on.
type statusError struct {
	status int
	text   string
}

// Error implements error.
func (e *statusError) Error() string { return e.text }

// IsNotFound says whether a call failed because the member answered with the status 404: members of an older version
// do so for calls that they do not have.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == http.StatusNotFound
}
