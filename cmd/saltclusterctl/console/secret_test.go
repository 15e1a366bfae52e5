package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// screenshot is what a terminal has shown.
type screenshot struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screenshot) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screenshot) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// openTerminal opens a terminal: the end of those who type, and the end of the program.
func openTerminal(t *testing.T) (keyboard, terminal *os.File, shown *screenshot) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	shown = &screenshot{}
	go io.Copy(shown, keyboard) // ends when the keyboard is closed
	return keyboard, terminal, shown
}

func isShown(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return state.Lflag&unix.ECHO != 0
}

// A terminal does not show a secret that is typed, and shows what is typed afterwards.
func TestReadSecret_Terminal(t *testing.T) {
	keyboard, terminal, shown := openTerminal(t)
	e := &Env{Stdin: terminal, Stderr: terminal, terminal: terminal}
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := e.ReadSecret("token: ")
		answers <- answer{text, err}
	}()
	patience.WaitFor(t, "the question", func() bool { return shown.has("token: ") })
	if isShown(t, terminal) {
		t.Error("what is typed is shown after the question")
	}
	fmt.Fprint(keyboard, "sct1.secret\n")
	if got := <-answers; got.text != "sct1.secret" || got.err != nil {
		t.Errorf("read %q: %v", got.text, got.err)
	}
	if !isShown(t, terminal) {
		t.Error("what is typed stays hidden")
	}
	fmt.Fprint(keyboard, "next\n")
	patience.WaitFor(t, "what is typed afterwards", func() bool { return shown.has("next") })
	if shown.has("sct1") {
		t.Error("the secret was shown")
	}
}

// Ctrl-C at the question leaves a terminal that shows what is typed.
func TestReadSecret_Interrupted(t *testing.T) {
	_, terminal, shown := openTerminal(t)
	ctx, interrupt := context.WithCancel(t.Context())
	e := &Env{Stdin: Interruptible(ctx, terminal), Stderr: terminal, terminal: terminal}
	ended := make(chan error, 1)
	go func() {
		_, err := e.AskSecret("token: ")
		ended <- err
	}()
	patience.WaitFor(t, "the question", func() bool { return shown.has("token: ") })
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if !isShown(t, terminal) {
		t.Error("what is typed stays hidden")
	}
}

// What is too long is not cut: a part of a secret is another secret.
func TestReadSecret_TooLong(t *testing.T) {
	for _, n := range []int{MaxSecret, MaxSecret + 1} {
		text := strings.Repeat("s", n)
		for name, read := range map[string]func(*Env) (string, error){
			"standard input": func(e *Env) (string, error) { return e.ReadSecret("token: ") },
			"an answer":      func(e *Env) (string, error) { return e.readAnswer("token: ") },
		} {
			got, err := read(&Env{Stdin: strings.NewReader(text), Stderr: io.Discard})
			if n > MaxSecret && (got != "" || err == nil || !strings.Contains(err.Error(), "more than 4096 bytes")) ||
				n == MaxSecret && (got != text || err != nil) {
				t.Errorf("%s of %d bytes: %d are read, %v", name, n, len(got), err)
			}
		}
	}
}

func TestReadSecret_Pipe(t *testing.T) {
	e := &Env{Stdin: strings.NewReader("sct1.secret\n"), Stderr: io.Discard}
	if got, err := e.ReadSecret("token: "); got != "sct1.secret" || err != nil {
		t.Errorf("read %q: %v", got, err)
	}
	if got, err := e.AskSecret("token: "); got != "" || err != nil {
		t.Errorf("asked without a terminal: %q: %v", got, err)
	}
}
