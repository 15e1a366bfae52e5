package main

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newRotateCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "rotate",
		Usage: "replace a secret of the cluster while the cluster runs",
		Description: "Each of these commands can be repeated, resumes where it was interrupted, and says what happens to nodes that are down.\n" +
			"The cluster's identity (master.pem), which minions have stored, is replaced in steps: rotate identity.",
		Subcommands: []*cli.Command{
			newRotateWhat(e, adminapi.RotateAES,
				"replace the AES key of publications; minions are moved to the new one over rotate_window"),
			newRotateWhat(e, adminapi.RotateGossipKey, "replace the key of the gossip between the nodes"),
			newRotateWhat(e, adminapi.RotateCertificates,
				"give the nodes new keys and certificates for the peer port, one after the other",
				&cli.StringFlag{Name: "node", Usage: "only the node with this `ID`"}),
			newRotateSecretCommand(e),
			newRotateIdentityCommand(e),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return console.NoSuchWord("saltclusterctl rotate --help", "aes, gossip-key, certificates, secret or identity")(c)
			}
			return listRotations(c, e)
		},
	})
}

func rotateFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "dry-run", Usage: "change nothing, show what would happen"}, console.YesFlag(),
		console.TimeoutFlag()}
}

// listRotations answers a bare "rotate": what can be replaced. Its exit code tells a script that nothing was.
func listRotations(c *cli.Context, e *console.Env) error {
	s := e.NewScreen()
	var rows [][]console.Cell
	for _, sub := range c.Command.Subcommands {
		rows = append(rows, []console.Cell{console.Txt("saltclusterctl rotate " + sub.Name), console.Txt(sub.Usage)})
	}
	s.PrintTable("", []string{"COMMAND", "WHAT IT DOES"}, rows)
	if _, err := e.Stdout.Write(s.Bytes()); err != nil {
		return err
	}
	return console.SilentError(console.ExitUsage)
}

func newRotateWhat(e *console.Env, what, usage string, flags ...cli.Flag) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: what, Usage: usage, Flags: append(flags, rotateFlags()...),
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return runRotate(c, e, adminapi.RotateRequest{What: what, Node: c.String("node")})
		}),
	})
}

func newRotateSecretCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  adminapi.RotateSecret,
		Usage: "change cluster_secret, with which nodes join; members keep running without it",
		Subcommands: []*cli.Command{console.CompleteCommand(&cli.Command{
			Name: "finish", Usage: "the second step: refuse the old secret", Flags: rotateFlags(),
			Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
				return runRotate(c, e, adminapi.RotateRequest{What: adminapi.RotateSecret, Finish: true})
			}),
		})},
		Description: "At first both secrets are accepted. When the configuration of all nodes has the new one, rotate secret finish refuses the old\n" +
			"one. With --now the old one is refused at once: use it when the old one has leaked.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "secret-file",
				Usage: "the new secret is in `FILE` (- is standard input); if FILE does not exist, it is created with a random secret"},
			&cli.BoolFlag{Name: "now", Usage: "refuse the old secret from now on"},
			&cli.BoolFlag{Name: "finish", Hidden: true}, // of earlier builds
		}, rotateFlags()...),
		Action: console.WithoutArgs(e, runRotateSecret),
	})
}

func newRotateIdentityCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  adminapi.RotateIdentity,
		Usage: "replace master.pem of all nodes in steps",
		Subcommands: []*cli.Command{
			newIdentityStep(e, "status", "", "show the progress: which minion has stored which key"),
			newIdentityStep(e, adminapi.IdentityPrepare, adminapi.IdentityPrepare,
				"the first step: create a new key pair beside the current one, and say how minions get it; from then on the cluster uses both"),
			newIdentityStep(e, adminapi.IdentitySwitch, adminapi.IdentitySwitch,
				"the second step: switch to the new key; the nodes take it one after the other and restart their salt-masters (master_restart_command)"),
			newIdentityStep(e, adminapi.IdentityFinish, adminapi.IdentityFinish, "the last step: delete the former key"),
			newIdentityStep(e, adminapi.IdentityAbort, adminapi.IdentityAbort, "cancel before the switch: delete the new key"),
		},
		// The command line of earlier builds: a step is a flag, and without one it is status.
		Flags: console.HideFlags(append(rotateFlags(), &cli.BoolFlag{Name: "prepare"}, &cli.BoolFlag{Name: "switch"},
			&cli.BoolFlag{Name: "finish"}, &cli.BoolFlag{Name: "abort"}, forceFlag())...),
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			chosen := ""
			for _, step := range []string{adminapi.IdentityPrepare, adminapi.IdentitySwitch, adminapi.IdentityFinish,
				adminapi.IdentityAbort} {
				switch {
				case !c.Bool(step):
				case chosen != "":
					return console.Usagef("saltclusterctl rotate identity --help", "--%s and --%s are two steps", chosen, step)
				default:
					chosen = step
				}
			}
			return rotateIdentity(c, e, chosen)
		}),
	})
}

// newIdentityStep is a step of the rotation of the identity; the empty step only reports.
func newIdentityStep(e *console.Env, name, step, usage string) *cli.Command {
	flags := []cli.Flag{console.TimeoutFlag()}
	if step != "" {
		flags = append([]cli.Flag{forceFlag()}, rotateFlags()...)
	}
	return console.CompleteCommand(&cli.Command{
		Name: name, Usage: usage, Flags: flags,
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error { return rotateIdentity(c, e, step) }),
	})
}

func forceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "continue even if minions or nodes are behind and would be cut off"}
}

func rotateIdentity(c *cli.Context, e *console.Env, step string) error {
	return runRotate(c, e, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: step, Force: c.Bool("force")})
}

func runRotateSecret(c *cli.Context, e *console.Env) error {
	file, finish := c.String("secret-file"), c.Bool("finish")
	const example = "saltclusterctl rotate secret --secret-file /root/cluster.secret"
	r := adminapi.RotateRequest{What: adminapi.RotateSecret, Now: c.Bool("now"), Finish: finish}
	switch {
	case finish && (file != "" || r.Now):
		return console.Usagef("saltclusterctl rotate secret finish", "the second step needs no other flag")
	case finish:
		return runRotate(c, e, r)
	case file == "":
		return console.Usagef(example, "the new secret needs a file: --secret-file")
	}
	if err := consentToRotation(e, c, r); err != nil {
		return err
	}
	secret, err := newSecret(e, file, c.Bool("dry-run"))
	if err != nil {
		return err
	}
	r.Secret = secret
	return rotateSecret(c, e, r)
}

// newSecret reads the new secret; a file that is not there is made. It is made before anything is changed: with
// a secret that only the cluster knew, no node could join.
func newSecret(e *console.Env, file string, dry bool) (adminapi.Secret, error) {
	if file != "-" {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			text := randomSecret()
			if dry {
				return adminapi.Secret(text), nil
			}
			if err := console.WriteNew(file, []byte(text+"\n")); err != nil {
				return "", fmt.Errorf("make a secret: %w", err)
			}
			fmt.Fprintf(e.Stderr, "secret: a random one was written to %s\n", console.Clean(file))
		}
	}
	return readSecret(e, file)
}

// randomSecret has 256 bits.
func randomSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func runRotate(c *cli.Context, e *console.Env, r adminapi.RotateRequest) error {
	if err := consentToRotation(e, c, r); err != nil {
		return err
	}
	return rotateSecret(c, e, r)
}

// consentToRotation asks before anything is replaced; "rotate identity" without a step only reports.
func consentToRotation(e *console.Env, c *cli.Context, r adminapi.RotateRequest) error {
	if c.Bool("dry-run") || r.What == adminapi.RotateIdentity && r.Step == "" {
		return nil
	}
	return e.AskConsent(c, rotateQuestion(r))
}

func rotateSecret(c *cli.Context, e *console.Env, r adminapi.RotateRequest) error {
	r.DryRun, r.Timeout = c.Bool("dry-run"), c.Duration("timeout")
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Rotate, r))
}

func rotateQuestion(r adminapi.RotateRequest) string {
	switch r.What {
	case adminapi.RotateAES:
		return "replace the AES key of publications?"
	case adminapi.RotateGossipKey:
		return "replace the gossip key?"
	case adminapi.RotateCertificates:
		return fmt.Sprintf("replace the keys and certificates of %s?", console.Clean(cmp.Or(r.Node, "all nodes")))
	case adminapi.RotateSecret:
		switch {
		case r.Finish:
			return "refuse the former cluster_secret from now on?"
		case r.Now:
			return "replace cluster_secret, and refuse the present one from now on?"
		}
		return "accept the new cluster_secret beside the present one?"
	case adminapi.RotateIdentity:
		return fmt.Sprintf("rotate identity: %s?", r.Step)
	}
	return fmt.Sprintf("rotate %s?", r.What)
}
