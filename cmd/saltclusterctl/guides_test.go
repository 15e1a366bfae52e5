package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/integration/check"
	"saltclusterd/integration/guides"
	"saltclusterd/integration/require"
)

// Every command line of the guides, run by a test or not, has verbs, flags and numbers of arguments that there are.
func TestGuidesNameWhatThereIs(t *testing.T) {
	found := map[bool]int{}
	for _, p := range pages(t) {
		for _, c := range append(p.Lines(), p.Spans()...) {
			for _, args := range guides.Arguments(c.Text, "saltclusterctl") {
				found[true]++
				check.NoError(t, parses(args), c)
			}
		}
		for _, c := range p.Spans() { // as `keys merge --take web1=m2`
			words := strings.Fields(c.Text)
			if !mentionsVerb(words) || strings.Contains(c.Text, "  ") { // columns: a line of what is printed
				continue
			}
			found[false]++
			err := parses(guides.Arguments("saltclusterctl "+c.Text, "saltclusterctl")[0])
			if err != nil && !strings.Contains(err.Error(), "needs a value") { // `setup --join` speaks of the flag
				t.Errorf("%s: %v", c, err)
			}
		}
	}
	if found[true] < 100 || found[false] < 10 {
		t.Errorf("only %d command lines and %d verbs are found", found[true], found[false])
	}
	t.Logf("%d command lines, %d verbs", found[true], found[false])
}

// The test above would notice.
func TestGuidesMustParse(t *testing.T) {
	for line, ok := range map[string]bool{
		"status": true, "nonsense": false, "trees conflicts": false, "roots conflicts": true, "roots sideways": false,
		"status --chek":          false,
		"drain --over TIME [m2]": true, "drain --over m2": false, "join PEER --token-file -": true, "members m1": false,
		"rotate":                   true,
		"completion bash|zsh|fish": true, "help": true, "drain --help": true, "--out json members": true,
		"jobs list -n N": true,
	} {
		if err := parses(strings.Fields(line)); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// verbs is only looked at. Building it takes milliseconds under the race detector, and thousands of words are looked up.
var verbs = sync.OnceValue(func() *cli.App { return newApp(&console.Env{}) })

// mentionsVerb: it begins with a verb, and goes on as a command line does.
func mentionsVerb(words []string) bool {
	if len(words) < 2 {
		return false
	}
	c := verbs().Command(words[0])
	return c != nil && (strings.HasPrefix(words[1], "--") || len(c.Subcommands) > 0)
}

var (
	placeholder = regexp.MustCompile(`^[A-Z][A-Z_-]*$`)
	brackets    = strings.NewReplacer("[", "", "]", "", "…", "")
)

// parsed keeps what was said of a command line: the guides have many more than once.
var parsed = map[string]error{}

func parses(args []string) error {
	line := strings.Join(args, "\x00")
	err, known := parsed[line]
	if !known {
		err = parse(args)
		parsed[line] = err
	}
	return err
}

// parse has the real program take the command line apart; only what it would do is left out.
func parse(args []string) error {
	var clean []string
	for _, arg := range args {
		if arg = brackets.Replace(arg); arg == "" {
			continue
		}
		arg, _, _ = strings.Cut(arg, "|") // of words to choose from the first
		clean = append(clean, arg)
	}
	app := newApp(&console.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(string) string { return "" }})
	console.VisitCommands(app.Commands, func(c *cli.Command) {
		c.Action = func(ctx *cli.Context) error {
			switch {
			case !ctx.Args().Present():
				return nil
			case len(c.Subcommands) > 0 && c.ArgsUsage == "":
				return fmt.Errorf("%s has no verb %q", c.Name, ctx.Args().First())
			case c.ArgsUsage == "":
				return fmt.Errorf("%s takes no argument, but got %q", c.Name, ctx.Args().First())
			}
			return nil
		}
		for _, f := range c.Flags { // what stands for a value is none
			for _, name := range f.Names() {
				i := slices.IndexFunc(clean, func(w string) bool {
					return strings.TrimLeft(w, "-") == name && strings.HasPrefix(w, "-")
				})
				if i < 0 || i+1 == len(clean) || !placeholder.MatchString(clean[i+1]) {
					continue
				}
				switch f.(type) {
				case *cli.DurationFlag:
					clean[i+1] = "1m"
				case *cli.IntFlag:
					clean[i+1] = "1"
				}
			}
		}
	})
	return app.RunContext(context.Background(), append([]string{app.Name}, console.ArrangeArgs(app, clean)...))
}

// Blocks that need no saltclusterd do what the page says, in a directory with a node's configuration.
func TestGuidesPlain(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "saltclusterd")
	text := "id: m1\ncluster_id: production\ncluster_secret: an-example-of-0123456789abcdef\nsalt_config: " +
		filepath.Join(dir, "master") + "\n"
	for path, text := range map[string]string{config: text, filepath.Join(dir, "master"): "root_dir: " + dir + "\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	n := 0
	for _, p := range pages(t) {
		blocks, err := p.Runnables()
		require.NoError(t, err)
		for _, b := range blocks {
			if b.Stage != guides.Plain {
				continue
			}
			n++
			t.Run(b.Name(), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", b.Script)
				cmd.Dir, cmd.Stdin = dir, strings.NewReader(b.Answer+"\n")
				cmd.Env = append(os.Environ(), "SALTCLUSTER_CONFIG="+config,
					"SALTCLUSTER_SOCKET="+filepath.Join(dir, "admin.sock"), "GORACE=atexit_sleep_ms=0", "COLUMNS=1000", "SALTCLUSTER_SERVICE_MANAGER=systemd")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				code := 0
				if e, ok := errors.AsType[*exec.ExitError](cmd.Run()); ok {
					code = e.ExitCode()
				}
				if lacks := guides.Lacks(out.String(), b.Shows); code != b.Exit || lacks != "" {
					t.Errorf("exit code %d, wanted %d; lacks %q\n%s", code, b.Exit, lacks, out.String())
				}
			})
		}
	}
	if n == 0 {
		t.Error("there is none")
	}
}

func pages(t *testing.T) []guides.Page {
	t.Helper()
	all, err := guides.Read("../..")
	require.NoError(t, err)
	return all
}
