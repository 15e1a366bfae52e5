package console

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxSecret bounds what is read of standard input, in bytes.
const MaxSecret = 4 << 10

// ReadSecret reads a secret from standard input: at a terminal the line that is typed after a question, which the
// terminal does not show; else everything.
func (e *Env) ReadSecret(question string) (string, error) {
	if e.terminal != nil {
		return e.AskSecret(question)
	}
	text, err := io.ReadAll(io.LimitReader(e.Stdin, MaxSecret+1))
	if err == nil {
		err = CheckLength(len(text))
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// CheckLength says that a secret of so many bytes is not taken: what was read of it is another secret.
func CheckLength(n int) error {
	if n > MaxSecret {
		return fmt.Errorf("it has more than %d bytes", MaxSecret)
	}
	return nil
}

// AskSecret asks for a secret, which the terminal does not show. Without a terminal it returns an empty one.
func (e *Env) AskSecret(question string) (string, error) {
	if e.terminal == nil {
		return "", nil
	}
	showInput, err := hideInput(e.terminal)
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	defer showInput()
	return e.readAnswer(question)
}

// hideInput has a terminal show nothing of what is typed but the end of a line, until the returned function is called.
func hideInput(terminal *os.File) (showInput func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag = hidden.Lflag&^unix.ECHO | unix.ECHONL
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
