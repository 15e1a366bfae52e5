package roots

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"time"
)

// Handler answers what other members ask at Path.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Store) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.cfg.From(r.Context()); !ok {
		http.Error(w, "not a member", http.StatusForbidden)
		return
	}
	if s.run == nil {
		http.Error(w, "roots are not replicated here", http.StatusServiceUnavailable)
		return
	}
	select {
	case s.served <- struct{}{}:
		defer func() { <-s.served }()
	case <-r.Context().Done():
		return
	case <-s.run.Done():
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
		return
	}
	question, hashes, err := decodeRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := &answerer{s: s, w: w, rc: http.NewResponseController(w), ctx: r.Context()}
	// Close does not wait for a slow peer
	stop := context.AfterFunc(s.run, func() { _ = a.rc.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	switch question {
	case questionWant:
		a.want(hashes)
	case questionHave:
		a.have(hashes)
	case questionLive:
		s.mu.Lock()
		root := s.liveRoot
		s.mu.Unlock()
		_, _ = w.Write(root[:])
	}
}

// answerer writes one answer.
type answerer struct {
	s   *Store
	w   http.ResponseWriter
	rc  *http.ResponseController
	ctx context.Context
}

// maxAnswer is how many bytes one answer has, more or less: the rest is asked for again.
const maxAnswer = 64 << 20

// want streams content. Whatever goes wrong shows as a missing last frame.
func (a *answerer) want(hashes []Hash) {
	disk := a.s.newDiskReader()
	disk.unread = true // whoever asked verifies all the same
	defer disk.close()
	packed := a.s.pack.packing()
	defer a.s.pack.rest(packed)
	out := bufio.NewWriterSize(&counter{w: a.w, a: a}, 256<<10)
	sent := 0
	for _, h := range hashes {
		if a.ctx.Err() != nil || a.s.run.Err() != nil {
			return
		}
		content, err := disk.chunk(h) // most are files'; the database would be asked in vain
		if err != nil {
			content, err = a.s.Object(h)
		}
		if b, ok := a.s.recent.get(h); ok && err != nil {
			content, err = b, nil
		}
		if err != nil {
			_, err = out.Write(frame{Encoding: encMissing, Hash: h}.append(nil))
		} else {
			err = a.s.pack.write(out, h, content, packed)
		}
		if err != nil {
			return
		}
		if sent += len(content); sent > maxAnswer {
			break
		}
	}
	_, _ = out.Write(frame{Encoding: encEnd}.append(nil))
	_ = out.Flush()
}

func (a *answerer) have(hashes []Hash) {
	where := a.s.locations()
	out := make([]byte, len(hashes))
	for i, h := range hashes {
		if _, ok := where[h]; ok {
			out[i] = 1
		} else if _, ok := a.s.recent.get(h); ok {
			out[i] = 1
		} else if _, err := a.s.Object(h); err == nil {
			out[i] = 1
		}
	}
	_, _ = a.w.Write(out)
}

// counter counts what is sent, and gives up on a peer that does not read.
type counter struct {
	w io.Writer
	a *answerer
}

func (c *counter) Write(b []byte) (int, error) {
	_ = c.a.rc.SetWriteDeadline(time.Now().Add(c.a.s.cfg.Timing.Stall)) // not every ResponseWriter has deadlines
	if c.a.s.run.Err() != nil {
		return 0, context.Cause(c.a.s.run)
	}
	n, err := c.w.Write(b)
	c.a.s.metrics.sent.Add(float64(n))
	return n, err
}
