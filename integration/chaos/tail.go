package chaos

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"saltclusterd/backoff"
)

// tailEvery is how often a log is looked at for more.
const tailEvery = 50 * time.Millisecond

// tail calls take with each whole line that is appended to a file, from its beginning, until ctx ends.
func tail(ctx context.Context, path string, take func(line []byte)) {
	var rest []byte
	var at int64
	for {
		f, err := os.Open(path)
		if err == nil {
			more, _ := io.ReadAll(io.NewSectionReader(f, at, 1<<24))
			f.Close()
			at += int64(len(more))
			rest = append(rest, more...)
		}
		for {
			line, after, found := bytes.Cut(rest, []byte("\n"))
			if !found {
				break
			}
			take(line)
			rest = after
		}
		if !backoff.Sleep(ctx, tailEvery) {
			return
		}
	}
}
