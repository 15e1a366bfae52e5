package support

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"saltclusterd/cmd/saltclusterctl/console"
)

// maxLog bounds what is taken of a log, in bytes.
const maxLog = 16 << 20

// errNoLog is for hosts on which nothing says where the log is.
var errNoLog = errors.New("the log was not found, because saltclusterd writes to standard error: name its file with --log FILE")

// readLog returns the newest n lines of saltclusterd's log: of a file if one is named, else of the journal or of the
// file that this host's service manager writes. The text may be incomplete when it returns an error.
func readLog(ctx context.Context, e *console.Env, file string, n int) ([]byte, error) {
	path, journal := e.ServiceLog("saltclusterd")
	switch {
	case file != "":
		return readTail(file, n, maxLog, 0)
	case journal:
		return readJournal(ctx, n)
	case path == "":
		return nil, errNoLog
	}
	// Others than root may write next to this file: a link there is not followed.
	text, err := readTail(path, n, maxLog, unix.O_NOFOLLOW)
	if err != nil {
		err = fmt.Errorf("%w (--log FILE names another one)", err)
	}
	return text, err
}

// readTail returns the newest n lines of a file, at most limit bytes.
func readTail(path string, n int, limit int64, flags int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0) // a pipe is not waited for
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the log: %s is not a regular file", path)
	}
	from := max(0, info.Size()-limit)
	text := make([]byte, info.Size()-from)
	read, err := f.ReadAt(text, from)
	text = text[:read]
	if err != nil && !errors.Is(err, io.EOF) { // it may have been truncated meanwhile
		return nil, fmt.Errorf("read the log: %w", err)
	}
	if from > 0 { // not from the middle of a line
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return lastLines(text, n), nil
}

// lastLines returns the last n lines of text.
func lastLines(text []byte, n int) []byte {
	end := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; n > 0 && end >= 0; n-- {
		end = bytes.LastIndexByte(text[:end], '\n')
	}
	return text[end+1:]
}

// readJournal asks journald.
func readJournal(ctx context.Context, n int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, console.AskTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", "--unit", "saltclusterd", "--no-pager", "--output", "short-iso",
		"--lines", fmt.Sprint(n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(out, maxLog))
	if err := cmp.Or(cmd.Wait(), err); err != nil {
		return text, fmt.Errorf("read the journal: %w", err)
	}
	return text, nil
}
