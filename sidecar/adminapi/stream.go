package adminapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

const maxLine = 1 << 20 // bytes of one event

// Bootstrap makes a new cluster out of the node. progress, which may be nil, is
// called for every step before Bootstrap returns.
func (c *Client) Bootstrap(ctx context.Context, r BootstrapRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/bootstrap", r, progress)
}

// Join makes the node a member of another cluster. progress, which may be nil,
// is called for every step before Join returns.
func (c *Client) Join(ctx context.Context, r JoinRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/join", r, progress)
}

// Remove takes a node off the roster. progress as for Join.
func (c *Client) Remove(ctx context.Context, r RemoveRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/remove", r, progress)
}

// Transfer makes another node lead. progress as for Join.
func (c *Client) Transfer(ctx context.Context, r TransferRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/transfer", r, progress)
}

// Rotate puts a new AES key in force. progress as for Join.
func (c *Client) Rotate(ctx context.Context, r RotateRequest, progress func(Progress)) (Outcome, error) {
	return c.runOperation(ctx, "/rotate", r, progress)
}

// runOperation posts a request and reads its stream of events to the end.
func (c *Client) runOperation(ctx context.Context, path string, body any, progress func(Progress)) (Outcome, error) {
	resp, err := c.doJSON(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return Outcome{}, err
	}
	defer resp.Body.Close()
	return c.readEvents(ctx, resp.Body, progress)
}

// readEvents reads a stream of events to its end.
func (c *Client) readEvents(ctx context.Context, body io.Reader, progress func(Progress)) (Outcome, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return Outcome{}, fmt.Errorf("read an event: %w", err)
		}
		switch {
		case e.Error != nil:
			return Outcome{}, e.Error
		case e.Outcome != nil:
			return *e.Outcome, nil
		case e.Progress != nil && progress != nil:
			progress(*e.Progress)
		}
	}
	if err := lines.Err(); err != nil {
		return Outcome{}, c.explainError(ctx, err)
	}
	return Outcome{}, Errorf(CodeUnavailable, "saltclusterctl status shows how far it got",
		"saltclusterd ended before it reported the result")
}
