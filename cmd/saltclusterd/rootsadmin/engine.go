package rootsadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

// contentPeers implements roots.Peers.
type contentPeers struct{ r *Roots }

// Members implements roots.Peers.
func (p contentPeers) Members() []node.ID {
	return p.r.cfg.Sources()
}

// Fetch implements roots.Peers.
func (p contentPeers) Fetch(ctx context.Context, from node.ID, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(from)+roots.Path, strings.NewReader(string(body)))
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

// forgetLists makes the master list its files anew: it keeps lists of each environment for 20 seconds and longer
// (salt/fileserver/__init__.py check_file_list_cache). Hashes it keeps with the time of the file, which is another one.
func (r *Roots) forgetLists() {
	r.cfg.ForgetFiles() // first: a list that is being made is not written then
	dir := filepath.Join(r.cfg.Master.CacheDir, "file_lists", "roots")
	lists, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.cfg.Logger.Warn("the master's lists of files are not renewed", "path", dir, "err", err)
	}
	for _, l := range lists {
		if filepath.Ext(l.Name()) != ".p" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, l.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.cfg.Logger.Warn("the master's list of files is not renewed", "path", filepath.Join(dir, l.Name()), "err", err)
		}
	}
}

// oneLine makes a text of another node fit for a log line and a status.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
