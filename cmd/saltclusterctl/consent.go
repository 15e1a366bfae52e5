package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"},
		Usage: "do not ask; needed where there is no terminal to ask at"}
}

// askConsent asks before a change that cannot be undone. Without a terminal only --yes is an answer: a script that runs
// the wrong line, or one with an empty variable in it, changes nothing.
func (e *env) askConsent(c *cli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	answer, err := e.readAnswer(c, question+" [y/N] ")
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" {
		return e.reportCancelled()
	}
	return nil
}

// consentByName asks for consent to something that must not be agreed to by habit: the answer is a name.
func (e *env) consentByName(c *cli.Context, what, name string) error {
	if c.Bool("yes") {
		return nil
	}
	answer, err := e.readAnswer(c, fmt.Sprintf("type %s (%s) to continue: ", what, clean(name)))
	if err != nil {
		return err
	}
	if answer != name {
		return e.reportCancelled()
	}
	return nil
}

func (e *env) readAnswer(c *cli.Context, question string) (string, error) {
	if !e.terminal {
		return "", usagef("repeat the command with --yes",
			"%s asks before it changes anything, and there is no terminal to ask at; nothing was changed",
			strings.TrimPrefix(c.Command.HelpName, "saltclusterctl "))
	}
	fmt.Fprint(e.stderr, question)
	line, err := bufio.NewReader(io.LimitReader(e.stdin, maxSecret)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (e *env) reportCancelled() error {
	fmt.Fprintln(e.stderr, "Cancelled.")
	return &silentError{exitError}
}
