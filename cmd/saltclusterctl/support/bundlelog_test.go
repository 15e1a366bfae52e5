package support

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func TestLastLines(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"a\n", 1, "a\n"}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 2, "a\nb\n"},
		{"a\nb\n", 9, "a\nb\n"}, {"\n\n\n", 2, "\n\n"}, {"a\nb", 1, "b"},
	} {
		if got := string(lastLines([]byte(test.text), test.n)); got != test.want {
			t.Errorf("the last %d lines of %q: %q, want %q", test.n, test.text, got, test.want)
		}
	}
}

func TestReadTail(t *testing.T) {
	dir := t.TempDir()
	log, link, pipe := filepath.Join(dir, "log"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(log, []byte("first\nsecond\nthird\n"), 0o600))
	require.NoError(t, os.Symlink(log, link))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, test := range []struct {
		path  string
		limit int64
		flags int
		want  string
		fails bool
	}{
		{path: log, limit: 100, want: "second\nthird\n"},
		{path: log, limit: 10, want: "third\n"}, // the rest of "second" is no line
		{path: link, limit: 100, want: "second\nthird\n"},
		{path: link, limit: 100, flags: unix.O_NOFOLLOW, fails: true},
		{path: pipe, limit: 100, fails: true},
		{path: dir, limit: 100, fails: true},
		{path: filepath.Join(dir, "none"), limit: 100, fails: true},
	} {
		got, err := readTail(test.path, 2, test.limit, test.flags)
		if string(got) != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %q, %v", test.path, got, err)
		}
	}
}
