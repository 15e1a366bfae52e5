package main

import (
	"io"
	"os"

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
}

func systemEnv() *env {
	colour := isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, colour: colour, terminal: isTerminal(os.Stdin)}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
