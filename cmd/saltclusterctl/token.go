package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/sidecar/adminapi"
)

func newTokenCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "token",
		Usage: "let one node join, once, without telling it cluster_secret",
		Description: "A token is made here, and only the half of it that proofs are checked with is told to the cluster. It names the cluster\n" +
			"by the fingerprint of its key, so the node that uses it cannot end up in another one.",
		Subcommands: []*cli.Command{newTokenCreateCommand(e), newTokenListCommand(e), newTokenRevokeCommand(e)},
		Action: func(c *cli.Context) error {
			return noSuchWord(c, "saltclusterctl token --help", "create, list or revoke")
		},
	})
}

func newTokenCreateCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "create",
		Usage: "make a token and print it; it is shown this once",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "valid", Value: time.Hour, Usage: "it can be used for `TIME` from now on, 1m to 720h"},
			&cli.StringFlag{Name: "node", Usage: "only the node with this `ID` may use it"},
			&cli.StringFlag{Name: "note", Usage: "`TEXT` to know it by in token list"},
			&cli.StringFlag{Name: "file",
				Usage: "write it to the new `FILE`, readable by its owner only, instead of printing it"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runTokenCreate(c, e)
		},
	})
}

// createdToken is what is shown of a new token.
type createdToken struct {
	adminapi.TokenCreated
	Text string `json:"text,omitempty"` // the token; empty when it is in a file
	File string `json:"file,omitempty"`
}

func runTokenCreate(c *cli.Context, e *env) error {
	file := c.String("file")
	if _, err := os.Lstat(file); file != "" && !errors.Is(err, fs.ErrNotExist) {
		return usagef("", "%s is there already", file)
	}
	tok := jointoken.New()
	created, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.TokenCreated, error) {
		return client.CreateToken(ctx, adminapi.TokenRequest{
			ID: tok.ID(), Public: tok.Public(), Valid: c.Duration("valid"), Node: c.String("node"), Note: c.String("note"),
		})
	})
	if err != nil {
		return err
	}
	if tok, err = tok.For(created.ClusterPub); err != nil {
		return fmt.Errorf("the token is of no use: %w", err)
	}
	out := createdToken{TokenCreated: created, Text: tok.Text()}
	if file != "" {
		if err := writeNew(file, []byte(tok.Text()+"\n")); err != nil {
			return err
		}
		out.Text, out.File = "", file
	}
	return e.printValue(c, out, func(s *screen) { e.createdText(s, out) })
}

// createdText prints the token alone on standard output, so that it can be piped.
func (e *env) createdText(s *screen, t createdToken) {
	if t.Text != "" {
		s.line("%s", t.Text)
	}
	address := "ADDRESS OF A MEMBER"
	if len(t.Addresses) > 0 {
		address = t.Addresses[0]
	}
	from, there := "-", "on that node"
	if t.File != "" {
		from, there = filepath.Base(t.File), "on that node, with this file"
	}
	fmt.Fprintf(e.stderr, "token %s: one node may join with it until %s\n%s: saltclusterctl join %s --token-file %s\n",
		clean(t.Token.ID), formatStamp(t.Token.Expires), there, clean(address), clean(from))
}

// writeNew writes a new file that only its owner can read. An existing file is an error.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &adminapi.Error{Code: adminapi.CodeInternal, Message: path + ": file exists",
			Hint: "name another file, or take that one away"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func newTokenListCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "list",
		Usage: "list the tokens; used and expired ones are listed for a week",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			list, err := askAdmin(c, e, (*adminapi.Client).Tokens)
			if err != nil {
				return err
			}
			return e.printValue(c, list, func(s *screen) { tokensScreen(s, list) })
		},
	})
}

func tokensScreen(s *screen, list adminapi.Tokens) {
	rows := make([][]cell, 0, len(list.Tokens))
	for _, t := range list.Tokens {
		state := txt(string(t.State))
		if t.State == adminapi.TokenOpen {
			state = state.withTint(green)
		}
		rows = append(rows, []cell{
			txt(t.ID), state, txt(formatStamp(t.Expires)), txt(t.Node), txt(t.UsedBy), txt(t.By), txt(t.Note),
		})
	}
	s.printTable("", []string{"ID", "STATE", "EXPIRES", "FOR", "USED BY", "MADE ON", "NOTE"}, rows)
	s.line("%s", plural(len(list.Tokens), "token"))
}

func newTokenRevokeCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "revoke", ArgsUsage: "ID",
		Usage: "take a token back; a node that has joined with it stays a member",
		Flags: []cli.Flag{dryRunFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl token list", "token revoke takes one argument, the id of a token")
			}
			if c.Bool("dry-run") {
				return forecastRevoke(c, e)
			}
			t, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.Token, error) {
				return client.RevokeToken(ctx, c.Args().First())
			})
			if err != nil {
				return err
			}
			return e.printValue(c, t, func(s *screen) { s.line("the token %s was revoked", clean(t.ID)) })
		},
	})
}

func forecastRevoke(c *cli.Context, e *env) error {
	list, err := askAdmin(c, e, (*adminapi.Client).Tokens)
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
		effect = cmp.Or(t.UsedBy, "a node") + " has joined with it and would stay a member; it would not be listed any more"
	case adminapi.TokenExpired:
		effect = "it has expired: it would not be listed any more"
	}
	return e.showPlan(c, forecast{Effects: []string{effect}})
}

// tokenVariable is the environment variable that join takes a token from. The environment, unlike an argument, is shown
// to root and the own user only.
const tokenVariable = "SALTCLUSTER_JOIN_TOKEN"

// readToken reads the token for this one join; "" means that there is none.
func (e *env) readToken(file string) (adminapi.Secret, error) {
	var text string
	switch file {
	case "":
		text = e.getenv(tokenVariable)
		if text == "" {
			return "", nil
		}
	case "-":
		data, err := io.ReadAll(io.LimitReader(e.stdin, maxSecret))
		if err != nil {
			return "", fmt.Errorf("read the token from standard input: %w", err)
		}
		text = string(data)
	default:
		s, err := config.ReadSecretFile(file)
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		text = s.Reveal()
	}
	if _, err := jointoken.Parse(text); err != nil {
		return "", usagef("saltclusterctl token create, on a member, makes one", "the token is %v", err)
	}
	return adminapi.Secret(strings.TrimSpace(text)), nil
}
