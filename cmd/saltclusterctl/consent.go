package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}
}

// consent asks before what cannot be taken back, and only who sits at a terminal: scripts have always gone on without an answer.
func (e *env) consent(c *cli.Context, question string) error {
	if c.Bool("yes") || !e.terminal {
		return nil
	}
	return e.agree(question)
}

// agree asks a question that y answers with yes.
func (e *env) agree(question string) error {
	fmt.Fprintf(e.stderr, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(e.stdin, maxSecret)).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return usagef("--yes does not ask", "nothing was done")
	}
	return nil
}
