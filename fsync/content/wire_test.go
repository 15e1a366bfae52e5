package content

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"

	"github.com/prometheus/client_golang/prometheus"
)

func FuzzRequest(f *testing.F) {
	f.Add(encodeRequest(questionWant, []Hash{tree.Sum(nil), {}}))
	f.Add(encodeRequest(questionLive, nil))
	f.Add([]byte(requestMagic + "\x01\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		question, hashes, err := decodeRequest(b)
		if err != nil {
			return
		}
		if again := encodeRequest(question, hashes); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

func FuzzFrames(f *testing.F) {
	var p packers
	var b bytes.Buffer
	for _, content := range []string{"", "short", strings.Repeat("long ", 1000)} {
		require.NoError(f, p.writeFrame(&b, tree.Sum([]byte(content)), []byte(content), &packing{}))
	}
	f.Add(frame{Encoding: encEnd}.append(b.Bytes()))
	f.Add(frame{Encoding: encMissing, Hash: Hash{1}}.append(nil))
	f.Add(frame{Encoding: encZstd, Size: tree.MaxObject, Packed: 10}.append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p packers
		defer p.close()
		var bufs buffers
		in := bufio.NewReaderSize(bytes.NewReader(raw), 64) // some fit into it
		for {
			h, err := readFrame(in)
			if err != nil {
				return
			}
			if h.Packed > uint32(len(raw)) {
				return
			}
			content, err := p.readContent(in, h, &bufs)
			if err == nil && tree.Sum(content) != h.Hash {
				t.Fatal("content without its hash")
			}
			if err != nil {
				return
			}
		}
	})
}

func TestPackers_RejectBomb(t *testing.T) {
	var p packers
	defer p.close()
	var b bytes.Buffer
	zeros := make([]byte, 8<<20)
	require.NoError(t, p.writeFrame(&b, tree.Sum(zeros), zeros, &packing{}))
	raw := b.Bytes()
	h, err := readFrame(bytes.NewReader(raw))
	if err != nil || h.Encoding != encZstd {
		t.Fatalf("%+v, %v", h, err)
	}
	h.Size = h.Packed // it says that it is small
	var bufs buffers
	if _, err := p.readContent(bufio.NewReader(bytes.NewReader(raw[frameSize:])), h, &bufs); !errors.Is(err, errMalformed) {
		t.Errorf("unpacked: %v", err)
	}
}

// Of large content a sample tells whether it becomes smaller, from its beginning to its end.
func TestPackers_SampleLarge(t *testing.T) {
	var p packers
	defer p.close()
	require.NoError(t, p.open())
	const size = 4 * sampleFrom
	text := bytes.Repeat([]byte("a line of a state\n"), size/18)
	for _, c := range []struct {
		name    string
		content []byte
		packed  bool
	}{
		{"text", text, true},
		{"noise", []byte(noise(1, size)), false},
		{"noise with text at its end", append([]byte(noise(1, size)), text...), true},
		{"text at its beginning only", append(bytes.Clone(text[:sampleSize]), noise(1, 8*size)...), false},
		{"as large as a sample is taken of", text[:sampleFrom], true},
	} {
		check.Equal(t, p.pack(c.content, &packing{}), c.packed, c.name, "packed")
	}
}

// What does not become smaller comes in crowds, in which few are tried; what does is found again.
func TestPacking_SkipIncompressible(t *testing.T) {
	var p packers
	defer p.close()
	var k packing
	packed := func(content []byte) bool {
		var b bytes.Buffer
		require.NoError(t, p.writeFrame(&b, tree.Sum(content), content, &k))
		f, err := readFrame(&b)
		require.NoError(t, err)
		var bufs buffers
		if _, err := p.readContent(bufio.NewReader(&b), f, &bufs); err != nil {
			t.Fatal(err)
		}
		return f.Encoding == encZstd
	}
	text, picture := bytes.Repeat([]byte("a line of a state\n"), 100), []byte(noise(1, 4000))
	tried := 0
	for range 2 * barrenMost {
		if k.worth(len(picture)) {
			tried++
		}
		if packed(picture) {
			t.Error("noise is packed")
		}
	}
	if want := barrenMost + barrenMost/barrenTried; tried != want {
		t.Errorf("%d of %d were tried, not %d", tried, 2*barrenMost, want)
	}
	found := -1
	for i := range 2 * barrenTried {
		if packed(text) && found < 0 {
			found = i
		}
	}
	if found < 0 || found >= barrenTried {
		t.Errorf("text was packed from the content with the number %d on", found)
	}
	if !packed(text) {
		t.Error("text is not packed any more")
	}
}

// noise is content that cannot be packed.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{seed})
	_, _ = r.Read(b)
	return string(b)
}

// nothing is a member that has no content.
type nothing struct{}

func (nothing) Open() Reader              { return nothing{} }
func (nothing) Live() Hash                { return Hash{} }
func (nothing) Read(Hash) ([]byte, error) { return nil, tree.ErrNoObject }
func (nothing) Has(Hash) bool             { return false }
func (nothing) Close()                    {}

// serve makes a handler of a member that has nothing.
func serve(t *testing.T, stall time.Duration) http.HandlerFunc {
	c := func() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "c"}) }
	tr := New(Config{Source: nothing{}, Stall: stall, Fetched: c(), Sent: c(), Failed: c()})
	run, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); tr.Close() })
	return func(w http.ResponseWriter, r *http.Request) { tr.Serve(run, w, r) }
}

func TestServe_Refuses(t *testing.T) {
	handler := serve(t, time.Minute)
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"empty":     {"", http.StatusBadRequest},
		"noise":     {"hello", http.StatusBadRequest},
		"too large": {strings.Repeat("x", maxRequest+1), http.StatusRequestEntityTooLarge},
		"question":  {requestMagic + "\x09\x00\x00", http.StatusBadRequest},
	} {
		rec := httptest.NewRecorder()
		handler(rec, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)))
		check.Equal(t, rec.Code, c.want, name)
	}
	rec := httptest.NewRecorder()
	handler(rec, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(encodeRequest(questionWant, []Hash{{1}, {2}}))))
	for range 2 {
		if f, err := readFrame(rec.Body); err != nil || f.Encoding != encMissing {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if f, err := readFrame(rec.Body); err != nil || f.Encoding != encEnd {
		t.Errorf("%+v, %v", f, err)
	}
	if rest, _ := io.ReadAll(rec.Body); len(rest) > 0 {
		t.Errorf("%d bytes after the end", len(rest))
	}
}

// A deadline for one answer must not end the connection for the next, minutes later.
func TestServe_ConnectionReused(t *testing.T) {
	const stall = 30 * time.Millisecond
	srv := httptest.NewServer(serve(t, stall))
	defer srv.Close()
	var conns atomic.Int64
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
		addr string) (net.Conn, error) {
		conns.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Post(srv.URL, "", bytes.NewReader(encodeRequest(questionWant, []Hash{{1}})))
		require.NoError(t, err)
		if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 2*frameSize {
			t.Fatalf("%d bytes, %v", len(body), err)
		}
		resp.Body.Close()
		time.Sleep(3 * stall) // longer than a deadline
	}
	check.Equal(t, conns.Load(), 1, "connections")
}
