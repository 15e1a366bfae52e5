package content

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"time"
)

// Serve answers a request of a peer. It ends with run, and does not wait for a slow peer then.
func (t *Transfer) Serve(run context.Context, w http.ResponseWriter, r *http.Request) {
	select {
	case t.served <- struct{}{}:
		defer func() { <-t.served }()
	case <-r.Context().Done():
		return
	case <-run.Done():
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
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := &answerer{t: t, w: w, rc: http.NewResponseController(w), ctx: ctx}
	stop := context.AfterFunc(run, func() {
		cancel()
		_ = a.rc.SetWriteDeadline(time.Unix(1, 0))
	})
	defer stop()
	if question == questionLive {
		root := t.c.Source.Live()
		_, _ = w.Write(root[:])
		return
	}
	content := t.c.Source.Open()
	defer content.Close()
	if question == questionWant {
		a.want(content, hashes)
	} else {
		a.have(content, hashes)
	}
}

// answerer writes one answer.
type answerer struct {
	t   *Transfer
	w   http.ResponseWriter
	rc  *http.ResponseController
	ctx context.Context
}

// maxAnswer is how many bytes one answer has, more or less: the rest is asked for again.
const maxAnswer = 64 << 20

// want streams content. Whatever goes wrong shows as a missing last frame.
func (a *answerer) want(from Reader, hashes []Hash) {
	packed := a.t.pack.packing()
	defer a.t.pack.rest(packed)
	out := bufio.NewWriterSize(&counter{w: a.w, a: a}, 256<<10)
	sent := 0
	for _, h := range hashes {
		if a.ctx.Err() != nil {
			return
		}
		content, err := from.Read(h)
		if err != nil {
			_, err = out.Write(frame{Encoding: encMissing, Hash: h}.append(nil))
		} else {
			err = a.t.pack.writeFrame(out, h, content, packed)
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

func (a *answerer) have(from Reader, hashes []Hash) {
	out := make([]byte, len(hashes))
	for i, h := range hashes {
		if from.Has(h) {
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
	_ = c.a.rc.SetWriteDeadline(time.Now().Add(c.a.t.c.Stall)) // not every ResponseWriter has deadlines
	if c.a.ctx.Err() != nil {
		return 0, context.Cause(c.a.ctx)
	}
	n, err := c.w.Write(b)
	c.a.t.c.Sent.Add(float64(n))
	return n, err
}
