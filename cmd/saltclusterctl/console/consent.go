package console

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// YesFlag is the flag with which no question is asked.
func YesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"},
		Usage: "do not ask; needed where there is no terminal to ask at"}
}

// AskConsent asks before a change that cannot be undone. Without a terminal only --yes is an answer: a script that runs
// the wrong line, or one with an empty variable in it, changes nothing.
func (e *Env) AskConsent(c *cli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	answer, err := e.ask(c, question+" [y/N] ")
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" {
		return e.reportCancelled()
	}
	return nil
}

// ConsentByName asks for consent to something that must not be agreed to by habit: the answer is a name.
func (e *Env) ConsentByName(c *cli.Context, what, name string) error {
	if c.Bool("yes") {
		return nil
	}
	answer, err := e.ask(c, fmt.Sprintf("type %s (%s) to continue: ", what, Clean(name)))
	if err != nil {
		return err
	}
	if answer != name {
		return e.reportCancelled()
	}
	return nil
}

// ask asks a question at the terminal.
func (e *Env) ask(c *cli.Context, question string) (string, error) {
	if e.terminal == nil {
		return "", Usagef("repeat the command with --yes",
			"%s asks before it changes anything, and there is no terminal to ask at; nothing was changed",
			commandName(c))
	}
	return e.readAnswer(question)
}

func (e *Env) readAnswer(question string) (string, error) {
	fmt.Fprint(e.Stderr, question)
	line, err := bufio.NewReader(io.LimitReader(e.Stdin, MaxSecret+1)).ReadString('\n')
	if err == nil || err == io.EOF {
		err = CheckLength(len(line))
	}
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (e *Env) reportCancelled() error {
	fmt.Fprintln(e.Stderr, "Cancelled.")
	return SilentError(ExitError)
}
