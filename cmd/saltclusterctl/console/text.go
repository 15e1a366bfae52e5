package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/sidecar/adminapi"
)

// FormatAge shows the two greatest units of a time span.
func FormatAge(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// StateTint is the colour of a member's state.
func StateTint(state adminapi.State) string {
	switch state {
	case adminapi.StateAlive:
		return Green
	case adminapi.StateFailed:
		return Red
	}
	return Plain
}

// Refusedf is an error for what is not done, with what to do instead.
func Refusedf(hint, format string, args ...any) error {
	return adminapi.Errorf(adminapi.CodeRefused, hint, format, args...)
}

// WithTimeout is the context of a command with --timeout.
func WithTimeout(c *cli.Context) (context.Context, context.CancelFunc) {
	if t := c.Duration("timeout"); t > 0 {
		return context.WithTimeout(c.Context, t)
	}
	return context.WithCancel(c.Context)
}

// WriteNew writes a new file that only its owner can read. An existing file is an error.
func WriteNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &adminapi.Error{Code: adminapi.CodeInternal, Message: path + ": file exists",
			Hint: "name another file, or move that one away"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
