package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
)

var shells = []string{"bash", "zsh", "fish"}

func newCompletionCommand(e *console.Env) *cli.Command {
	return &cli.Command{
		Name: "completion", ArgsUsage: "bash|zsh|fish",
		Usage: "print the completion script of a shell",
		Description: "The packages install all three scripts. Without a package:\n\n" +
			"  saltclusterctl completion bash > /usr/share/bash-completion/completions/saltclusterctl\n" +
			"  saltclusterctl completion zsh > /usr/share/zsh/vendor-completions/_saltclusterctl\n" +
			"  saltclusterctl completion fish > /usr/share/fish/vendor_completions.d/saltclusterctl.fish",
		HideHelpCommand: true,
		OnUsageError:    console.OnUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || !slices.Contains(shells, c.Args().First()) {
				return console.Usagef("saltclusterctl completion bash", "completion takes the name of a shell: %s",
					strings.Join(shells, ", "))
			}
			text, err := completionScript(newApp(e), c.Args().First())
			if err != nil {
				return err
			}
			_, err = io.WriteString(e.Stdout, text)
			return err
		},
	}
}

func completionScript(app *cli.App, shell string) (string, error) {
	switch shell {
	case "fish":
		text, err := app.ToFishCompletion()
		return text + fishIDs(listPlaces(app)), err
	case "zsh":
		return zshCompletion(listPlaces(app)), nil
	}
	return bashCompletion(listPlaces(app)), nil
}

// place is where one can be on a command line: after some commands.
type place struct {
	path   string // " keys list"
	words  []choice
	follow string // what its arguments are: nodes, minions or jobs; empty: none of these
}

// choice is a word that can follow, and what it is for.
type choice struct{ word, usage string }

func listPlaces(app *cli.App) []place {
	top := place{}
	for _, c := range visibleCommands(app.Commands) {
		top.words = append(top.words, choice{c.Name, c.Usage})
	}
	return append([]place{top}, placesOf("", app.Commands)...)
}

func placesOf(path string, commands []*cli.Command) []place {
	var out []place
	for _, c := range visibleCommands(commands) {
		p := place{follow: wordsAfter(c.ArgsUsage)}
		for _, sub := range c.Subcommands {
			p.words = append(p.words, choice{sub.Name, sub.Usage})
		}
		for _, f := range c.VisibleFlags() {
			usage := ""
			if d, ok := f.(cli.DocGenerationFlag); ok {
				usage = strings.ReplaceAll(d.GetUsage(), "`", "")
			}
			if name := f.Names()[0]; len(name) > 1 {
				p.words = append(p.words, choice{"--" + name, usage})
			}
		}
		for _, name := range c.Names() { // aliases too
			p.path = path + " " + name
			out = append(append(out, p), placesOf(p.path, c.Subcommands)...)
		}
	}
	return out
}

func bashCompletion(all []place) string {
	var b strings.Builder
	b.WriteString(`# bash completion of saltclusterctl; made by saltclusterctl completion bash
_saltclusterctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path="" word words="" kind=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path $word" in
`)
	fmt.Fprintf(&b, "        %s) path=\"$path $word\" ;;\n        esac\n    done\n    case \"$path\" in\n", quotePaths(all))
	for _, p := range all {
		words := make([]string, 0, len(p.words))
		for _, w := range p.words {
			words = append(words, w.word)
		}
		fmt.Fprintf(&b, "    %q) words=%q kind=%q ;;\n", p.path, strings.Join(words, " "), p.follow)
	}
	fmt.Fprintf(&b, "    esac\n    case \"$path $prev\" in\n%s    esac\n%s    [[", bashFlags(all), bashWords)
	b.WriteString(" ${#COMPREPLY[@]} -gt 0 || $cur == -* ]] || compopt -o default 2>/dev/null\n}\ncomplete -F _saltclusterctl saltclusterctl\n")
	return b.String()
}

// bashWords offers what is known here, and then what the cluster knows. The words of the cluster are read line by line:
// compgen -W would run what is in them. Where no word has been begun none is passed: an empty argument is refused.
const bashWords = `    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ -n $kind && $cur != -* ]]; then
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done < <(command "${COMP_WORDS[0]}" complete "$kind" ${cur:+"$cur"} 2>/dev/null)
    fi
`

// idFlag is a flag after which an id of the cluster follows.
type idFlag struct{ path, flag, kind string }

func idFlags(all []place) (flags []idFlag) {
	for _, p := range all {
		for _, w := range p.words {
			if kind := wordsOfFlag(w.word); kind != "" && p.path != " setup" { // setup runs before a cluster exists
				flags = append(flags, idFlag{p.path, w.word, kind})
			}
		}
	}
	return flags
}

// bashFlags are the cases of flags after which an id of the cluster follows.
func bashFlags(all []place) string {
	var b strings.Builder
	for _, f := range idFlags(all) {
		fmt.Fprintf(&b, "    %q) words=\"\" kind=%q ;;\n", f.path+" "+f.flag, f.kind)
	}
	return b.String()
}

func quotePaths(all []place) string {
	var quoted []string
	for _, p := range all {
		if p.path != "" {
			quoted = append(quoted, fmt.Sprintf("%q", p.path))
		}
	}
	return strings.Join(quoted, "|")
}

func zshCompletion(all []place) string {
	var b strings.Builder
	b.WriteString(`#compdef saltclusterctl
# zsh completion of saltclusterctl; made by saltclusterctl completion zsh
_saltclusterctl() {
    local at="" word kind="" none=1
    local -a choices ids
    for word in "${words[@]:1:$((CURRENT-2))}"; do
        case "$at $word" in
`)
	fmt.Fprintf(&b, "        (%s)) at=\"$at $word\" ;;\n        esac\n    done\n    case \"$at\" in\n", quotePaths(all))
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`)
	for _, p := range all {
		fmt.Fprintf(&b, "    (%q) choices=(", p.path)
		for _, w := range p.words {
			fmt.Fprintf(&b, "\n        '%s:%s'", quote.Replace(w.word), quote.Replace(w.usage))
		}
		fmt.Fprintf(&b, "\n    ) kind=%q ;;\n", p.follow)
	}
	b.WriteString("    esac\n    case \"$at ${words[CURRENT-1]}\" in\n")
	for _, f := range idFlags(all) {
		fmt.Fprintf(&b, "    (%q) choices=() kind=%q ;;\n", f.path+" "+f.flag, f.kind)
	}
	b.WriteString("    esac\n" + zshIDs + "}\n_saltclusterctl \"$@\"\n")
	return b.String()
}

// zshIDs offers what the cluster knows, then what is known here, and files where there is neither.
const zshIDs = `    if [[ -n $kind && $PREFIX != -* ]]; then
        ids=(${(f)"$(command "${(Q)words[1]}" complete "$kind" ${PREFIX:+"$PREFIX"} 2>/dev/null)"})
        (( ${#ids} )) && compadd -a ids && none=0
    fi
    (( ${#choices} )) && _describe saltclusterctl choices && none=0
    (( none )) && _files
`

// fishIDs offers what the cluster knows, in addition to the words that the library offers.
func fishIDs(all []place) string {
	var b strings.Builder
	b.WriteString(`
function __saltclusterctl_ids
    set -l begun (string replace -r '^--[a-z-]+=' '' -- (commandline -ct))
    if test -n "$begun"
        command saltclusterctl complete $argv[1] "$begun" 2>/dev/null
    else
        command saltclusterctl complete $argv[1] 2>/dev/null
    end
end
`)
	for _, p := range all {
		if p.follow != "" {
			fmt.Fprintf(&b, "complete -c saltclusterctl -n '%s; and not string match -q -- \"-*\" (commandline -ct)' -f -a '(__saltclusterctl_ids %s)'\n",
				fishCondition(p.path), p.follow)
		}
	}
	for _, f := range idFlags(all) {
		fmt.Fprintf(&b, "complete -c saltclusterctl -n '%s' -l %s -x -a '(__saltclusterctl_ids %s)'\n", fishCondition(f.path),
			strings.TrimPrefix(f.flag, "--"), f.kind)
	}
	return b.String()
}

// fishCondition is true after these commands.
func fishCondition(path string) string {
	var conditions []string
	for word := range strings.FieldsSeq(path) {
		conditions = append(conditions, "__fish_seen_subcommand_from "+word)
	}
	return strings.Join(conditions, "; and ")
}
