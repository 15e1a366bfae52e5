package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// Config of a Tracer.
type Config struct {
	Endpoint   string // where spans are posted, whole: http://127.0.0.1:4318/v1/traces
	OneIn      int    // one request in so many is traced; 0: every one
	IDs        bool   // spans name minions
	Node       string // this node
	Cluster    string
	Version    string // of saltclusterd
	Logger     *slog.Logger
	Registerer prometheus.Registerer // may be nil
	// Every is how long spans wait for others, and the most that a batch waits; 0: two seconds.
	Every time.Duration
}

const (
	queueSize   = 1024 // requests that wait to be told
	batchSize   = 256  // requests that are told at once
	sendsWithin = 5 * time.Second
	closeWithin = 2 * time.Second
)

// Tracer samples requests and tells a collector of them. A nil one traces nothing.
type Tracer struct {
	cfg    Config
	client *http.Client
	queue  chan *Request
	stop   chan struct{}
	ctx    context.Context // of what is sent; ends a moment after stop
	cancel context.CancelFunc
	wg     sync.WaitGroup

	count atomic.Int64
	spans *prometheus.CounterVec
	bad   bool // the collector did not take the last batch
}

// New returns a tracer that is at work from Open to Close; nil without an endpoint.
func New(cfg Config) *Tracer {
	if cfg.Endpoint == "" {
		return nil
	}
	if cfg.Every == 0 {
		cfg.Every = 2 * time.Second
	}
	t := &Tracer{
		cfg: cfg, queue: make(chan *Request, queueSize), stop: make(chan struct{}),
		client: &http.Client{
			Timeout: sendsWithin,
			// Spans go where the option says, and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: sendsWithin},
		},
		spans: metric.NewSet(cfg.Registerer, "trace").NewCounterVec("requests_total",
			"Requests that were traced: sent to the collector, refused by it (failed), or dropped because it is slow.", "outcome"),
	}
	for _, outcome := range []string{"sent", "failed", "dropped"} {
		t.spans.WithLabelValues(outcome)
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Open begins to send.
func (t *Tracer) Open(context.Context) error {
	if t != nil {
		t.wg.Go(t.runSender)
	}
	return nil
}

// Close tells what is left, for two seconds at most.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	close(t.stop)
	late := time.AfterFunc(closeWithin, t.cancel)
	t.wg.Wait()
	late.Stop()
	t.cancel()
	t.client.CloseIdleConnections()
	return nil
}

// isSampled says whether the next request is one of those that are traced: they are spread evenly.
func (t *Tracer) isSampled() bool {
	return t.cfg.OneIn <= 1 || t.count.Add(1)%int64(t.cfg.OneIn) == 1
}

// enqueueRequest never waits.
func (t *Tracer) enqueueRequest(r *Request) {
	select {
	case t.queue <- r:
	default:
		t.spans.WithLabelValues("dropped").Inc()
	}
}

func (t *Tracer) runSender() {
	tick := time.NewTicker(t.cfg.Every)
	defer tick.Stop()
	batch := make([]*Request, 0, batchSize)
	for {
		select {
		case r := <-t.queue:
			if batch = append(batch, r); len(batch) < batchSize {
				continue
			}
		case <-tick.C:
		case <-t.stop:
			t.sendRest(batch)
			return
		}
		t.sendBatch(batch)
		batch = batch[:0]
	}
}

// sendRest sends what is there when Close is called.
func (t *Tracer) sendRest(batch []*Request) {
	for {
		select {
		case r := <-t.queue:
			if batch = append(batch, r); len(batch) == batchSize {
				t.sendBatch(batch)
				batch = batch[:0]
			}
		default:
			t.sendBatch(batch)
			return
		}
	}
}

func (t *Tracer) sendBatch(batch []*Request) {
	if len(batch) == 0 {
		return
	}
	err := t.postBatch(t.cfg.encodeBatch(batch))
	outcome := "sent"
	if err != nil {
		outcome = "failed"
		if !t.bad { // once, until it takes some again
			t.cfg.Logger.Warn("traces not taken by the collector", "err", err)
		}
	}
	t.bad = err != nil
	t.spans.WithLabelValues(outcome).Add(float64(len(batch)))
}

func (t *Tracer) postBatch(body []byte) error {
	req, err := http.NewRequestWithContext(t.ctx, http.MethodPost, t.cfg.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "saltclusterd/"+t.cfg.Version)
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", t.cfg.Endpoint, resp.Status)
	}
	return nil
}
