//go:build integration

package scenario

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// eventStream is what /events sends (SSE).
type eventStream struct {
	mu    sync.Mutex
	tags  []string
	ended error
}

// listen opens a stream, which ends with the test.
func (s *apiSite) listen(t *testing.T, url, token string) *eventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	labtest.Must(t, err)
	req.Header.Set("X-Auth-Token", token)
	res, err := (&http.Client{Transport: s.client.Transport}).Do(req) // for as long as it lasts
	labtest.Must(t, err)
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		t.Fatalf("%s answers %d", url, res.StatusCode)
	}
	e := &eventStream{}
	go func() {
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if tag, ok := strings.CutPrefix(lines.Text(), "tag: "); ok {
				e.mu.Lock()
				e.tags = append(e.tags, tag)
				e.mu.Unlock()
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ended = fmt.Errorf("the stream has ended: %w", lines.Err())
	}()
	return e
}

// count is how many events came whose tag contains the text.
func (e *eventStream) count(text string) (n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, tag := range e.tags {
		if strings.Contains(tag, text) {
			n++
		}
	}
	return n, e.ended
}

// await causes an event until one more has come than there were: a stream that has just begun may miss the first.
func (e *eventStream) await(t *testing.T, text string, cause func(context.Context) error) {
	t.Helper()
	before, err := e.count(text)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "an event with "+text, func(ctx context.Context) error {
		if err := cause(ctx); err != nil {
			return err
		}
		return lab.Eventually(ctx, 5*time.Second, "it to come", func(context.Context) error {
			n, err := e.count(text)
			if err == nil && n == before {
				err = fmt.Errorf("%d have come", n)
			}
			return err
		})
	}))
}
