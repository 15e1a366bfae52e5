package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/sidecar/adminapi"
)

func newTokenCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "token",
		Usage: "let one node join once, without cluster_secret",
		Description: "The token is created on this host. The cluster stores its public key and what token list shows, never its secret part, so\n" +
			"nothing that the cluster stores can be used to join. The token contains the fingerprint of the cluster's key: the node that\n" +
			"uses it cannot join another cluster.",
		Subcommands: []*cli.Command{newTokenCreateCommand(e), newTokenListCommand(e), newTokenRevokeCommand(e)},
		Action:      console.NoSuchWord("saltclusterctl token --help", "create, list or revoke"),
	})
}

func newTokenCreateCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "create",
		Usage: "create a token and print it; it is shown only once",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Aliases: []string{"valid"}, Value: time.Hour, Usage: "the token can be used for `TIME` from now, 1m to 720h"},
			&cli.StringFlag{Name: "node", Usage: "only the node with this `ID` may use it"},
			&cli.StringFlag{Name: "note", Usage: "`TEXT` that token list shows"},
			&cli.StringFlag{Name: "file",
				Usage: "write it to the new `FILE`, readable by its owner only, instead of printing it"},
		},
		Action: console.WithoutArgs(e, runTokenCreate),
	})
}

// createdToken is what is shown of a new token.
type createdToken struct {
	adminapi.TokenCreated
	Text string `json:"text,omitempty"` // the token; empty when it is in a file
	File string `json:"file,omitempty"`
}

func runTokenCreate(c *cli.Context, e *console.Env) error {
	file := c.String("file")
	if _, err := os.Lstat(file); file != "" && !errors.Is(err, fs.ErrNotExist) {
		return console.Usagef("", "%s already exists", file)
	}
	tok := jointoken.New()
	created, err := console.AskAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.TokenCreated,
		error) {
		return client.CreateToken(ctx, adminapi.TokenRequest{
			ID: tok.ID(), Public: tok.Public(), Valid: c.Duration("for"), Node: c.String("node"), Note: c.String("note"),
		})
	})
	if err != nil {
		return err
	}
	if tok, err = tok.For(created.ClusterPub); err != nil {
		return fmt.Errorf("the token cannot be used: %w", err)
	}
	out := createdToken{TokenCreated: created, Text: tok.Text()}
	if file != "" {
		if err := console.WriteNew(file, []byte(tok.Text()+"\n")); err != nil {
			return err
		}
		out.Text, out.File = "", file
	}
	return e.PrintValue(c, out, func(s *console.Screen) { createdText(e, s, out) })
}

// createdText prints the token alone on standard output, so that it can be piped.
func createdText(e *console.Env, s *console.Screen, t createdToken) {
	if t.Text != "" {
		s.Line("%s", t.Text)
	}
	address := "ADDRESS OF A MEMBER"
	if len(t.Addresses) > 0 {
		address = t.Addresses[0]
	}
	from, there := "-", "on that node"
	if t.File != "" {
		from, there = filepath.Base(t.File), "on that node, with this file"
	}
	fmt.Fprintf(e.Stderr, "token %s: one node may join with it until %s\n%s: saltclusterctl join %s --token-file %s\n",
		console.Clean(t.Token.ID), console.FormatStamp(t.Token.Expires), there, console.Clean(address), console.Clean(from))
}

func newTokenListCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "list",
		Usage: "list the tokens; used and expired ones are listed for a week",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).Tokens, tokensScreen)
		}),
	})
}

func tokensScreen(s *console.Screen, list adminapi.Tokens) {
	rows := make([][]console.Cell, 0, len(list.Tokens))
	for _, t := range list.Tokens {
		state := console.Txt(string(t.State))
		if t.State == adminapi.TokenOpen {
			state = state.WithTint(console.Green)
		}
		rows = append(rows, []console.Cell{
			console.Txt(t.ID), state, console.Txt(console.FormatStamp(t.Expires)), console.Txt(t.Node), console.Txt(t.UsedBy),
			console.Txt(t.By), console.Txt(t.Note),
		})
	}
	s.PrintTable("", []string{"ID", "STATE", "EXPIRES", "FOR", "USED BY", "MADE ON", "NOTE"}, rows)
	s.Line("%s", wording.Plural(len(list.Tokens), "token"))
}

func newTokenRevokeCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "revoke", ArgsUsage: "ID",
		Usage: "revoke a token; a node that has joined with it stays a member",
		Flags: []cli.Flag{dryrun.DryRunFlag()},
		Action: console.WithOneArg(e, "saltclusterctl token list",
			"token revoke takes one argument, the id of a token", func(c *cli.Context, e *console.Env) error {
				if c.Bool("dry-run") {
					return forecastRevoke(c, e)
				}
				return console.ShowAnswer(c, e, console.With((*adminapi.Client).RevokeToken, c.Args().First()),
					func(s *console.Screen, t adminapi.Token) { s.Line("the token %s was revoked", console.Clean(t.ID)) })
			}),
	})
}

func forecastRevoke(c *cli.Context, e *console.Env) error {
	list, err := console.AskAdmin(c, e, (*adminapi.Client).Tokens)
	if err != nil {
		return err
	}
	id := c.Args().First()
	at := slices.IndexFunc(list.Tokens, func(t adminapi.Token) bool { return t.ID == id })
	if at < 0 {
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl token list", "there is no token %q", id)
	}
	effect := "no node could join with it any more"
	switch t := list.Tokens[at]; t.State {
	case adminapi.TokenUsed:
		effect = cmp.Or(t.UsedBy, "a node") + " has joined with it and would stay a member; the token would no longer be listed"
	case adminapi.TokenExpired:
		effect = "it has expired: it would no longer be listed"
	}
	return dryrun.ShowPlan(e, c, dryrun.Forecast{Effects: []string{effect}})
}

// tokenVariable is the environment variable that join takes a token from. The environment, unlike an argument, is shown
// to root and the own user only.
const tokenVariable = "SALTCLUSTER_JOIN_TOKEN"

// readToken reads the token for this one join; "" means that there is none.
func readToken(e *console.Env, file string) (adminapi.Secret, error) {
	var text string
	switch file {
	case "":
		text = e.Getenv(tokenVariable)
		if text == "" {
			return "", nil
		}
	case "-":
		var err error
		if text, err = e.ReadSecret("token: "); err != nil {
			return "", fmt.Errorf("read the token from standard input: %w", err)
		}
	default:
		s, err := config.ReadSecretFile(file)
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		text = s.Reveal()
	}
	return parseToken(text)
}

// parseToken checks the text of a token.
func parseToken(text string) (adminapi.Secret, error) {
	if _, err := jointoken.Parse(text); err != nil {
		return "", console.Usagef("saltclusterctl token create, on a member, makes one", "the token is %v", err)
	}
	return adminapi.Secret(strings.TrimSpace(text)), nil
}
