package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/integration/require"

	"github.com/urfave/cli/v2"
)

const referenceHead = `# Command line

Made from the commands of saltclusterctl (` + "`go test ./cmd/saltclusterctl -run Reference -update`" + `), as its help, its manual
page and its completion are.

saltclusterctl asks the saltclusterd of its host over the admin socket. Every node knows the whole cluster, even while other
nodes are down.

<!-- not run: a reference; the guides run the commands -->

**Questions.** Commands that cannot be undone, or that change every node, ask before they begin. Without a terminal they change
nothing and exit with 2 unless ` + "`--yes`" + ` is given. A question answered with "n" exits with 1.
An empty argument, or an empty value of a flag, is refused: it is a variable of a script that has no value.

**Flags mean the same everywhere.** ` + "`--for`" + ` is how long something lasts, ` + "`--within`" + ` a limit of time, ` + "`--count`" + ` (` + "`-n`" + `) a number of
lines, ` + "`--all`" + ` a longer list, ` + "`--all-nodes`" + ` every node. What a command is about is an argument; ` + "`--node`" + `, ` + "`--minion`" + ` and ` + "`--jid`" + `
narrow it down, and ` + "`--file`" + ` is where output may go instead of the screen. Names of earlier builds still work.

**Dry runs.** Most commands that ask have ` + "`--dry-run`" + `, and so do drain, transfer, token revoke and sync_roots: it prints what
would be done and why it would be refused, changes nothing and does not ask.
`

// TestReference_Current: docs/reference/cli.md is what the commands say.
func TestReference_Current(t *testing.T) {
	const path = "../../docs/reference/cli.md"
	want := cliReference()
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the commands say; run: go test ./cmd/saltclusterctl -run Reference -update", path)
	}
}

// cliReference renders the commands by category, with their flags, and the exit codes.
func cliReference() []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	app := newApp(&console.Env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	b.WriteString("\n## Flags of every command\n\n")
	writeFlags(&b, console.CompleteCommand(&cli.Command{}).Flags)
	category := ""
	for _, c := range app.VisibleCommands() {
		if c.Category != category {
			category = c.Category
			b.WriteString("\n## " + category + "\n")
		}
		writeCommand(&b, c, c.Name, commonFlags())
	}
	b.WriteString("\n## Exit codes\n\nScripts may rely on them.\n\n| code | meaning |\n|---|---|\n")
	for line := range strings.Lines(console.ExitCodesHelp) {
		if code, what, ok := strings.Cut(strings.TrimSpace(line), " "); ok && code != "EXIT" {
			fmt.Fprintf(&b, "| %s | %s |\n", code, markdown(strings.TrimSpace(what)))
		}
	}
	b.WriteString("\n## Environment\n\n| variable | meaning |\n|---|---|\n" +
		"| `SALTCLUSTER_SOCKET` | admin socket of saltclusterd, unless `--socket` is given |\n" +
		"| `SALTCLUSTER_SERVICE_MANAGER` | the service manager whose commands hints show: systemd, openrc, runit or none; default: that of this host |\n" +
		"| `COLUMNS` | where lines are wrapped if the output is not a terminal; default: 80 |\n" +
		"| `SALTCLUSTER_CONFIG` | main configuration file, unless `--config` is given |\n" +
		"| `" + tokenVariable + "` | the token of join, unless `--token-file` is given |\n" +
		"| `NO_COLOR` | when it is set, no colours |\n")
	return b.Bytes()
}

func writeCommand(b *bytes.Buffer, c *cli.Command, name string, common []string) {
	if subs := visibleCommands(c.Subcommands); len(subs) > 0 {
		if len(ownFlags(c, common)) > 0 { // it does something without a subcommand as well
			alone := *c
			alone.Subcommands = nil
			writeCommand(b, &alone, name, common)
		}
		for _, sub := range subs {
			writeCommand(b, sub, name+" "+sub.Name, common)
		}
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n`saltclusterctl %s`\n\n%s\n", markdown(name), strings.TrimSpace(name+" "+c.ArgsUsage),
		markdown(asSentence(c.Usage)))
	if c.Description != "" {
		for _, paragraph := range strings.Split(asSentence(c.Description), "\n\n") {
			if !strings.Contains(paragraph, "\n ") { // else it has lines of code
				paragraph = strings.Join(strings.Fields(paragraph), " ")
			}
			b.WriteString("\n" + markdown(paragraph) + "\n")
		}
	}
	if own := ownFlags(c, common); len(own) > 0 {
		b.WriteString("\n")
		writeFlags(b, own)
	}
}

func writeFlags(b *bytes.Buffer, flags []cli.Flag) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		var names []string
		for _, n := range f.Names() {
			names = append(names, strings.Repeat("-", min(len(n), 2))+n)
		}
		placeholder, usage := console.UnquoteUsage(doc)
		if v := doc.GetDefaultText(); v != "" && doc.TakesValue() && !strings.Contains(usage, "default:") {
			usage += "; default: " + strings.Trim(v, `"`)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimSpace(strings.Join(names, ", ")+" "+placeholder), markdown(usage))
	}
}

// markdown keeps a text from being taken for markup.
func markdown(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`).Replace(text)
}
