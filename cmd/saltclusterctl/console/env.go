package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// Env is the world outside: what a verb may read and write.
type Env struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Colour   bool             // stdout is a terminal that wants colours
	terminal *os.File         // stdin; nil: questions cannot be asked
	width    int              // columns of the terminal that stderr is; 0: it is none, or one that cannot draw
	services wording.Services // that commands in hints are for
	columns  int              // where lines of stdout are wrapped; 0: nowhere
	Waits    atomic.Bool      // a call of showWaiting says what is waited for
	// WorkFactor is what a guess at the passphrase of a snapshot costs: 2^WorkFactor rounds of scrypt.
	WorkFactor int
}

// usualWorkFactor is that of age: a second or so and 256 MiB.
const usualWorkFactor = 18

// SystemEnv is the Env of this process.
func SystemEnv() *Env {
	colour := isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Colour: colour,
		terminal: terminalOf(os.Stdin), width: widthOf(os.Stderr), columns: columnsOf(os.Stdout, os.Getenv("COLUMNS")),
		services: wording.HostServices(), WorkFactor: usualWorkFactor,
	}
}

// usualColumns is the width that all screens fit into.
const usualColumns = 80

// columnsOf is where lines are wrapped: at the width of a terminal, at what $COLUMNS says of anything else, and at 80
// columns where neither is known.
func columnsOf(f *os.File, variable string) int {
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	if n, err := strconv.Atoi(variable); err == nil && n > 0 {
		return n
	}
	return usualColumns
}

// widthOf is how many columns a terminal has on which a line can be written anew; 0: it is none of these.
func widthOf(f *os.File) int {
	if !isTerminal(f) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

// terminalOf is f if it is a terminal, else nil.
func terminalOf(f *os.File) *os.File {
	if isTerminal(f) {
		return f
	}
	return nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// variable is the value of $SALTCLUSTER_NAME; earlier builds called it $SALTCLUSTERD_NAME.
func (e *Env) variable(name string) string {
	return cmp.Or(e.Getenv("SALTCLUSTER_"+name), e.Getenv("SALTCLUSTERD_"+name))
}

// ConfigPath returns the main configuration file.
func (e *Env) ConfigPath(c *cli.Context) string {
	if p := c.String("config"); p != "" {
		return p
	}
	if p := e.variable("CONFIG"); p != "" {
		return p
	}
	return config.DefaultPath
}

// ServiceLog says where the log of a service is: in the journal, or in a file. Neither: it is not known.
func (e *Env) ServiceLog(unit string) (file string, journal bool) { return e.services.Log(unit) }

// HasServices says whether services can be started and restarted on this host.
func (e *Env) HasServices() bool { return e.services.Runs() }

// RunService runs a command of systemctl, or what stands for it on this host.
func (e *Env) RunService(ctx context.Context, command string) error {
	command = e.services.Adapt(command)
	if err := RunCommand(ctx, "sh", "-c", command); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// RunCommand runs a program. The error has what it printed.
func RunCommand(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return fmt.Errorf("%w: %s", err, Clean(text))
	}
	return err
}
