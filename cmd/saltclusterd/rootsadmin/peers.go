package rootsadmin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

// contentPeers implements content.Peers.
type contentPeers struct{ r *Roots }

// Members implements content.Peers.
func (p contentPeers) Members() []node.ID { return p.r.cfg.Sources() }

// Fetch implements content.Peers.
func (p contentPeers) Fetch(ctx context.Context, from node.ID, body []byte) (io.ReadCloser, error) {
	url := "https://" + string(from) + roots.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", from, err)
	}
	resp, err := p.r.cfg.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", from, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return nil, fmt.Errorf("fetch from %s: %s: %s", from, resp.Status, oneLine(string(text)))
	}
	return resp.Body, nil
}

// gate implements roots.Gate.
type gate func(context.Context) (func(), error)

// Hold implements roots.Gate.
func (g gate) Hold(ctx context.Context) (func(), error) { return g(ctx) }

// oneLine joins the lines of a text that another node sent.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
