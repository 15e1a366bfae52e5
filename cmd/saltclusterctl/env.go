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
}

func systemEnv() *env {
	_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
	colour := err == nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, colour: colour}
}
