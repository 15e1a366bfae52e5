package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/buildversion"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/packaging/manual"
)

// newManualCommand prints manual pages; packages are made with it.
func newManualCommand(e *console.Env) *cli.Command {
	return &cli.Command{
		Name:            "manual",
		Usage:           "print a manual page: saltclusterctl (1) or saltclusterd.conf (5)",
		ArgsUsage:       "[PAGE]",
		Hidden:          true,
		HideHelpCommand: true,
		OnUsageError:    console.OnUsageError,
		Action: func(c *cli.Context) error {
			var page []byte
			switch name := c.Args().First(); name {
			case "", "saltclusterctl":
				page = manualPage(c.App, buildversion.Get())
			case "saltclusterd.conf":
				page = config.Manual(buildversion.Get())
			default:
				return console.Usagef("saltclusterctl manual saltclusterctl, or saltclusterd.conf", "there is no page %q", name)
			}
			_, err := e.Stdout.Write(page)
			return err
		},
	}
}

// manualPage renders saltclusterctl(1) from the verbs.
func manualPage(app *cli.App, version string) []byte {
	p := manual.New("saltclusterctl", 1, "saltclusterd "+version, app.Usage)
	p.Heading("SYNOPSIS")
	p.Bold("saltclusterctl COMMAND [ARGUMENTS] [OPTIONS]")
	p.Heading("DESCRIPTION")
	p.Text(app.Description)
	p.Heading("COMMANDS")
	common := commonFlags()
	for _, c := range app.VisibleCommands() {
		manualCommand(p, c, c.Name, common)
	}
	p.Heading("COMMON OPTIONS")
	p.Text("Nearly every command has these.")
	for _, f := range console.CompleteCommand(&cli.Command{}).Flags {
		manualFlag(p, f)
	}
	manualEnd(p)
	return p.Bytes()
}

func manualCommand(p *manual.Page, c *cli.Command, name string, common []string) {
	if subs := visibleCommands(c.Subcommands); len(subs) > 0 {
		if len(ownFlags(c, common)) > 0 { // it does something without a subcommand as well
			alone := *c
			alone.Subcommands = nil
			manualCommand(p, &alone, name, common)
		}
		for _, sub := range subs {
			manualCommand(p, sub, name+" "+sub.Name, common)
		}
		return
	}
	p.Sub(strings.TrimSpace(name + " " + c.ArgsUsage))
	p.Text(asSentence(c.Usage))
	if c.Description != "" {
		p.Text(asSentence(c.Description))
	}
	for _, f := range ownFlags(c, common) {
		manualFlag(p, f)
	}
}

// ownFlags are those of a command that not every command has.
func ownFlags(c *cli.Command, common []string) []cli.Flag {
	return slices.DeleteFunc(c.VisibleFlags(), func(f cli.Flag) bool { return slices.Contains(common, f.Names()[0]) })
}

// manualFlag is an item for a flag; the word in backquotes of its usage is what stands for the value.
func manualFlag(p *manual.Page, f cli.Flag) {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return
	}
	names := make([]string, 0, len(f.Names()))
	for _, n := range f.Names() {
		names = append(names, strings.Repeat("-", min(len(n), 2))+n)
	}
	placeholder, usage := console.UnquoteUsage(doc)
	if v := doc.GetDefaultText(); v != "" && doc.TakesValue() && !strings.Contains(usage, "default:") {
		usage += "; default: " + strings.Trim(v, `"`)
	}
	p.Item(strings.Join(names, ", "), placeholder, usage)
}

// commonFlags are the names of the flags that verb gives to commands, and of help.
func commonFlags() []string {
	names := []string{"help"}
	for _, f := range console.CompleteCommand(&cli.Command{}).Flags {
		names = append(names, f.Names()[0])
	}
	return names
}

func visibleCommands(commands []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(commands), func(c *cli.Command) bool { return c.Hidden })
}

// asSentence begins with a capital letter and ends with a full stop.
func asSentence(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

func manualEnd(p *manual.Page) {
	p.Heading("EXIT STATUS")
	for line := range strings.Lines(console.ExitCodesHelp) {
		if code, what, ok := strings.Cut(strings.TrimSpace(line), " "); ok && code != "EXIT" {
			p.Item(code, "", strings.TrimSpace(what))
		}
	}
	p.Heading("ENVIRONMENT")
	p.Item("SALTCLUSTER_SOCKET", "", "admin socket of saltclusterd, unless --socket names another")
	p.Item("SALTCLUSTER_SERVICE_MANAGER", "", "the service manager whose commands hints show: systemd, openrc, runit or none; default: that of this host")
	p.Item("COLUMNS", "", "where lines are wrapped if the output is not a terminal; default: 80")
	p.Item("SALTCLUSTER_CONFIG", "", "main configuration file, unless --config names another")
	p.Item(tokenVariable, "", "the token of join, unless --token-file names a file with one")
	p.Item("NO_COLOR", "", "if it is set, no colours, not even on a terminal")
	p.Heading("FILES")
	p.Item(config.DefaultPath, "",
		"configuration, see saltclusterd.conf(5): where the socket is, and what config, doctor, setup, leave, bundle and haproxy --server look at")
	p.Heading("SEE ALSO")
	p.Text("saltclusterd(8), saltclusterd.conf(5), salt(1), salt-key(1), salt-run(1)")
}
