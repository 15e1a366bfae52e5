package fanout

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"saltclusterd/integration/require"
)

func TestRecordRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 4096, 70_000} {
		want := header{kind: kindPublication, seq: 7, clock: 9}
		payload := bytes.Repeat([]byte{0xa5}, size)
		r := bufio.NewReaderSize(bytes.NewReader(appendRecord(nil, want, payload)), 4096)
		got, body, err := readRecord(r)
		if err != nil || got != want || !bytes.Equal(body, payload) {
			t.Fatalf("%d bytes: header %+v, %d bytes, %v", size, got, len(body), err)
		}
	}
}

func TestReadRecordRefuses(t *testing.T) {
	long := appendRecord(nil, header{kind: kindPublication}, nil)
	long[17] = 0xff
	if _, _, err := readRecord(bufio.NewReader(bytes.NewReader(long))); !errors.Is(err, errTooLong) {
		t.Errorf("a record that announces 4 GiB: %v", err)
	}
	whole := appendRecord(nil, header{kind: kindPublication}, make([]byte, 100_000))
	for _, cut := range []int{5, headerSize, headerSize + 10, len(whole) - 1} {
		_, _, err := readRecord(bufio.NewReaderSize(bytes.NewReader(whole[:cut]), 4096))
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestPublicationRoundTrip(t *testing.T) {
	for _, want := range []Publication{
		{Plain: []byte("\x80")},
		{Plain: []byte("\x80"), Topics: []string{"broadcast"}},
		{Plain: []byte("abc"), Topics: []string{"", "a", "b"}, TopicOnly: true},
	} {
		b, err := appendPublication(nil, want)
		require.NoError(t, err)
		got, err := parsePublication(b)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzParsePublication(f *testing.F) {
	for _, p := range []Publication{{Plain: []byte("\x80")},
		{Plain: []byte("x"), Topics: []string{"a", "bb"}, TopicOnly: true}} {
		b, _ := appendPublication(nil, p)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePublication(b)
		if err != nil {
			return
		}
		again, err := appendPublication(nil, p)
		require.NoError(t, err)
		if q, err := parsePublication(again); err != nil || !cmp.Equal(p, q) {
			t.Fatalf("%v: %s", err, cmp.Diff(p, q))
		}
	})
}

func FuzzReadRecord(f *testing.F) {
	f.Add(appendRecord(nil, header{kind: kindHeartbeat, clock: 5}, nil))
	f.Add(appendRecord(nil, header{kind: kindSignIn, seq: 1}, appendSignIn(nil, "web1", 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			h, payload, err := readRecord(r)
			if err != nil {
				return
			}
			if h.kind == kindSignIn {
				_, _, _ = parseSignIn(payload)
			}
		}
	})
}

func TestParseEpoch(t *testing.T) {
	for name, tc := range map[string]struct {
		payload []byte
		want    uint64
		fails   bool
	}{
		"an epoch":    {[]byte{0, 0, 0, 0, 0, 0, 1, 2}, 258, false},
		"too short":   {[]byte{1, 2, 3}, 0, true},
		"too long":    {make([]byte, 9), 0, true},
		"nothing":     {nil, 0, true},
		"the largest": {bytes.Repeat([]byte{0xff}, 8), 1<<64 - 1, false},
	} {
		if got, err := parseEpoch(tc.payload); got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}
