package eventbus

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire/saltwiretest"
)

func TestFramesRoundTrip(t *testing.T) {
	for _, f := range []framing{prefixed, bare} {
		for _, size := range []int{1, 200, 300, 70_000} {
			data := bytes.Repeat([]byte{'x'}, size)
			stream := appendFrame(appendFrame(nil, f, "a/b", data), f, "c", []byte("d"))
			for cut := range min(len(stream), 60) {
				if body, n, err := cutFrame(stream[:cut], f, 1<<20); err != nil || (n == 0) != (body == nil) {
					t.Fatalf("framing %d cut at %d: %q, %d, %v", f, cut, body, n, err)
				}
			}
			r := frameReader{limit: 1 << 20}
			src := &oneByteReader{data: stream}
			var tags []string
			for len(tags) < 2 {
				require.NoError(t, r.fillBuffer(src))
				body, err := r.nextFrame()
				require.NoError(t, err)
				if body == nil {
					continue
				}
				tag, got, err := splitEvent(body)
				if err != nil || len(tags) == 0 && !bytes.Equal(got, data) {
					t.Fatalf("event %s: %d bytes, %v", tag, len(got), err)
				}
				tags = append(tags, tag)
			}
			if tags[0] != "a/b" || tags[1] != "c" {
				t.Errorf("tags %v", tags)
			}
		}
	}
}

// oneByteReader gives a few bytes at a time, as a socket may.
type oneByteReader struct{ data []byte }

func (r *oneByteReader) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 7)], r.data)
	r.data = r.data[n:]
	return n, nil
}

func TestFrameLimits(t *testing.T) {
	for name, in := range map[string]struct {
		f   framing
		buf []byte
	}{
		"announced too large": {prefixed, []byte{0, 0xff, 0xff, 0xff}},
		"endless":             {bare, append([]byte("\x82\xa4head\x80\xa4body\xc6\x7f\xff\xff\xff"), make([]byte, 2000)...)},
		"no map":              {bare, []byte{0x01}},
		"no body":             {bare, []byte("\x81\xa4head\x80")},
		"trailing":            {prefixed, []byte("\x00\x00\x00\x09\x81\xa4body\xa1x\xc0")},
		"cut within":          {prefixed, []byte("\x00\x00\x00\x06\x81\xa4body")},
		"body no bytes":       {bare, []byte("\x81\xa4body\x01")},
	} {
		if _, _, err := cutFrame(in.buf, in.f, 1000); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := detectFraming(0x7f); !errors.Is(err, ErrEvent) {
		t.Errorf("framing of garbage: %v", err)
	}
}

func TestStamp(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.UTC)
	check.Equal(t, formatStamp(at, 3007), "2026-03-04T05:06:07.000089")
	check.Equal(t, formatStamp(at.Truncate(time.Second), 3006), "2026-03-04T05:06:07")
	check.Equal(t, formatStamp(at, 3008), "2026-03-04T05:06:07.000089+00:00")
}

func TestWritten(t *testing.T) {
	events := []queuedEvent{{tag: "a", data: []byte("x")}, {tag: "b", data: make([]byte, 300)},
		{tag: "c", data: make([]byte, 70_000)}}
	for _, f := range []framing{prefixed, bare} {
		var text []byte
		for i, e := range events {
			before := len(text)
			text = appendFrame(text, f, e.tag, e.data)
			for size, want := range map[int]int{len(text) - 1: i, len(text): i + 1, len(text) + 3: i + 1} {
				check.Equal(t, countWritten(events, f, size), want, "framing", f, "after", size, "bytes")
			}
			if got := frameSize(f, e); got != len(text)-before {
				t.Errorf("framing %d: %d bytes, not %d", f, got, len(text)-before)
			}
		}
		check.Equal(t, countWritten(events, f, 0), 0, "of nothing")
	}
}

func TestReleasesThatRereadSessions(t *testing.T) {
	for text, want := range map[string]bool{
		"3006.28": false, "3007.0": false, "3007.8": false, "3007.14": false, "3007.15": true, "3007": true, "3008.1": false,
		"3008.2": false, "3008.3": true,
	} {
		if v, err := localmaster.ParseVersion(text); err != nil || v.RereadsSessions() != want {
			t.Errorf("%s: %t, %v", text, !want, err)
		}
	}
}

func TestReleasesThatAskSigningAlgorithm(t *testing.T) {
	for text, want := range map[string]bool{
		"3006.25": false, "3006.26": true, "3006": true, "3007.14": false, "3007.15": true, "3008.0": false, "3008.1": true,
		"3008.3": true,
	} {
		if v, err := localmaster.ParseVersion(text); err != nil || v.AsksSigningAlgorithm() != want {
			t.Errorf("%s: %t, %v", text, !want, err)
		}
	}
}

// What the releases take was looked up in each of them.
func TestFramingOfReleases(t *testing.T) {
	for text, want := range map[string]framing{
		"3006.25": bare, "3006.26": prefixed, "3006.28": prefixed, "3006": prefixed,
		"3007.0": bare, "3007.4": bare, "3007.14": bare, "3007.15": prefixed, "3007": prefixed,
		"3008.1": bare, "3008.2": prefixed, "3008.3": prefixed,
		"3007+12.g0a1b2c": prefixed, "3007.4+12.g0a1b2c": bare,
	} {
		cfg := busMaster(t, 3007, "x")
		var err error
		if cfg.Version, err = localmaster.ParseVersion(text); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, New(cfg, Options{}).format.pullFraming(), want, text)
	}
}

func TestTrimEvent(t *testing.T) {
	data, err := appendEventData(nil, map[string]any{
		"big": strings.Repeat("x", 900), "in": map[string]any{"big": strings.Repeat("y", 300), "ok": "z"}, "n": 1,
	}, time.Now(), 3006)
	require.NoError(t, err)
	out, err := trimEvent(data, 500)
	require.NoError(t, err)
	m, _, err := msgp.ReadMapStrIntfBytes(out, nil)
	require.NoError(t, err)
	in := m["in"].(map[string]any)
	if m["big"] != trimmed || in["big"] != trimmed || in["ok"] != "z" || m["n"] != int64(1) {
		t.Errorf("trimmed to %v", m)
	}
	if same, err := trimEvent(data, 1<<20); err != nil || !bytes.Equal(same, data) {
		t.Error("data that fits was changed")
	}
}

func FuzzCutFrame(f *testing.F) {
	f.Add(appendFrame(nil, prefixed, "salt/auth", []byte("\x81\xa1a\xa1b")))
	f.Add(appendFrame(nil, bare, "salt/auth", []byte("\x81\xa1a\xa1b")))
	f.Add([]byte("\x82\xa4head\x80\xa4body"))
	stockTraffic(f, func(stream []byte) { f.Add(stream) })
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, framing := range []framing{prefixed, bare} {
			body, n, err := cutFrame(in, framing, 1<<16)
			if n < 0 || n > len(in) || err == nil && (n == 0) != (body == nil) {
				t.Fatalf("%q, %d, %v", body, n, err)
			}
			if err == nil && n > 0 {
				_, _, _ = splitEvent(body)
			}
		}
	})
}

// stockTraffic adds what stock daemons of three versions sent (sidecar/saltwire/testdata/golden) to a corpus.
func stockTraffic(f *testing.F, add func(stream []byte)) {
	f.Helper()
	for _, v := range saltwiretest.Recorded(f, "../saltwire") {
		add(v.Bus.Stream)
		add(v.Bus.Push)
	}
}
