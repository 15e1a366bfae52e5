package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

func newJoinCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "join",
		Usage:     "make this node a member of the cluster that PEER belongs to",
		ArgsUsage: "PEER",
		Description: "PEER is host or host:port of any member. Either cluster_secret or a token (saltclusterctl token create, on a member) proves\n" +
			"the right to join; neither is sent over the network. The token can also be in $" + tokenVariable + ". The salt-master's\n" +
			"own key is backed up and replaced by the cluster's. The command refuses, and changes nothing, if minions would be lost:\n" +
			"minions accepted here that trust another master.pem than the cluster's, or whose keys are not in the cluster.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "secret-file",
				Usage: "take the secret from `FILE` (- is standard input) instead of the configuration"},
			&cli.StringFlag{Name: "token-file", Usage: "join with the one-time token in `FILE` (- is standard input)"},
			&cli.BoolFlag{Name: "replace-key",
				Usage: "join even if minions accepted here trust another master.pem than the cluster's; another master_sign.pem is replaced as well"},
			&cli.BoolFlag{Name: "keys-pending",
				Usage: "join even if keys accepted here are not in the cluster: they become pending"},
			&cli.StringFlag{Name: "pub-fingerprint", Usage: "refuse a cluster unless the SHA-256 of its master.pub is `HEX`"},
		}, console.WaitFlags()...),
		Action: console.WithOneArg(e, "saltclusterctl join 10.0.0.11",
			"join takes one argument, the address of any member", runJoin),
	})
}

func runJoin(c *cli.Context, e *console.Env) error {
	peer := c.Args().First()
	if _, _, err := config.SplitHostPort(peer, 1); err != nil {
		return console.Usagef("saltclusterctl join 10.0.0.11", "%v", err)
	}
	r := adminapi.JoinRequest{
		Peer: peer, PubFingerprint: strings.ToLower(c.String("pub-fingerprint")),
		ReplaceKey: c.Bool("replace-key"), KeysPending: c.Bool("keys-pending"), Wait: c.Bool("wait"),
		Timeout: c.Duration("timeout"),
	}
	if err := fillRight(e, c, &r); err != nil {
		return err
	}
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Join, r))
}

// fillRight fills in what the command line says about the right to join.
func fillRight(e *console.Env, c *cli.Context, r *adminapi.JoinRequest) (err error) {
	secret, token := c.String("secret-file"), c.String("token-file")
	if secret != "" && token != "" {
		return console.Usagef("saltclusterctl join PEER --token-file FILE", "use either --secret-file or --token-file, not both")
	}
	if r.Secret, err = readSecret(e, secret); err != nil || r.Secret != "" {
		return err
	}
	r.Token, err = readToken(e, token)
	return err
}

// readSecret reads the secret for this one join; "" means the daemon's own.
func readSecret(e *console.Env, file string) (adminapi.Secret, error) {
	if file == "" {
		return "", nil
	}
	if file != "-" {
		s, err := config.ReadSecretFile(file)
		if err != nil {
			return "", fmt.Errorf("secret file: %w", err)
		}
		return checkedSecret(s.Reveal())
	}
	text, err := e.ReadSecret("secret: ")
	if err != nil {
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	}
	return checkedSecret(text)
}

func checkedSecret(s string) (adminapi.Secret, error) {
	s = strings.TrimSpace(s)
	if err := config.CheckSecret(s); err != nil {
		return "", fmt.Errorf("the secret %w", err)
	}
	return adminapi.Secret(s), nil
}
