package main

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// env is the world outside: what a verb may read and write.
type env struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	colour bool // stdout is a terminal that wants colours
	// terminal: whoever types can be asked.
	terminal bool
	width    int         // columns of the terminal that stderr is; 0: it is none, or one that cannot draw
	waits    atomic.Bool // a call of showWaiting says what is waited for
}

func systemEnv() *env {
	colour := isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &env{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, colour: colour,
		terminal: isTerminal(os.Stdin), width: widthOf(os.Stderr),
	}
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

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
