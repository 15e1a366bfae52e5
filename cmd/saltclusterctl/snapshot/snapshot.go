package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/consensus/archive"
	"saltclusterd/durable"
	"saltclusterd/sidecar/adminapi"
)

func NewSnapshotCommand(e *console.Env) *cli.Command {
	c := console.CompleteCommand(&cli.Command{
		Name:  "snapshot",
		Usage: "save the whole cluster to a file, and restore it",
		Description: "The file contains the cluster's private key and all its secrets: anyone who has it can act as the cluster. Only its owner can\n" +
			"read it; --passphrase-file encrypts it with age (https://age-encryption.org).",
		Subcommands: []*cli.Command{newSaveCommand(e), newInspectCommand(e), newRestoreCommand(e)},
		Action:      console.NoSuchWord("saltclusterctl snapshot --help", "save, inspect or restore"),
	})
	return c
}

func passphraseFlag() cli.Flag {
	return &cli.StringFlag{Name: "passphrase-file", Usage: "encrypt or decrypt with the first line of `FILE`"}
}

func newSaveCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "save", ArgsUsage: "FILE",
		Usage: "write everything this node knows about the cluster to FILE, including secrets; it replaces an older " +
			"snapshot, and no other file",
		Flags:  []cli.Flag{passphraseFlag(), console.TimeoutFlag()},
		Action: withFile(e, "save", runSave),
	})
}

func newInspectCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "inspect", ArgsUsage: "FILE",
		Usage:  "check FILE and show which cluster it is from; shows no secrets, needs no daemon",
		Flags:  []cli.Flag{passphraseFlag()},
		Action: withFile(e, "inspect", runInspect),
	})
}

func newRestoreCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "restore", ArgsUsage: "FILE",
		Usage: "turn this node, which belongs to no cluster, into the cluster in FILE, with one member",
		Description: "For an empty machine when all nodes are lost. The salt-master gets the cluster's identity (its own is kept beside it) and all\n" +
			"minion keys. Remaining nodes of the former cluster have to join again; nothing is restored while one of them answers. It asks\n" +
			"for confirmation unless --yes is given; with --force you confirm by typing the cluster's id.",
		Flags: append([]cli.Flag{
			passphraseFlag(),
			dryrun.DryRunFlag(),
			console.YesFlag(),
			&cli.BoolFlag{Name: "force",
				Usage: "restore even if members of that cluster answer: they step down when they meet this node"},
		}, console.WaitFlags()...),
		Action: withFile(e, "restore", runRestore),
	})
}

// withFile runs a command that takes the name of a file.
func withFile(e *console.Env, name string, run func(*cli.Context, *console.Env, string) error) cli.ActionFunc {
	return console.WithOneArg(e, "saltclusterctl snapshot "+name+" /root/cluster.snapshot",
		"snapshot "+name+" takes one argument, a file",
		func(c *cli.Context, e *console.Env) error { return run(c, e, c.Args().First()) })
}

func runSave(c *cli.Context, e *console.Env, path string) error {
	passphrase, err := readPassphrase(c.Context, c.String("passphrase-file"))
	if err != nil {
		return err
	}
	if err := checkReplaceable(path); err != nil {
		return err
	}
	ctx, cancel := console.WithTimeout(c)
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	var file bytes.Buffer
	if err := client.SaveSnapshot(ctx, &file); err != nil {
		return err
	}
	h, content, err := archive.Read(&file)
	if err != nil {
		return err
	}
	if err := durable.Write(path, durable.Options{Mode: 0o600},
		func(w io.Writer) error { return writeSnapshot(w, h, content, passphrase, e.WorkFactor) }); err != nil {
		return err
	}
	h, encrypted, err := inspectSnapshot(c.Context, path, passphrase) // as it is on disk
	if err != nil {
		return err
	}
	if len(passphrase) == 0 {
		fmt.Fprintf(e.Stderr,
			"%s is not encrypted and holds the cluster's private key and all secrets: protect it as you protect master.pem\n", path)
	}
	return showHeader(e, c, h, encrypted)
}

// checkReplaceable refuses to write over what is not a snapshot. Encrypted files are told by their format alone.
func checkReplaceable(path string) error {
	f, err := console.OpenReplaced(path)
	if f == nil {
		return err
	}
	defer f.Close()
	plain, encrypted, err := decryptSnapshot(f, "")
	if encrypted {
		return nil
	}
	if err == nil {
		_, err = archive.Inspect(plain)
	}
	if err == nil || errors.Is(err, archive.ErrVersion) || errors.Is(err, archive.ErrChecksum) {
		return nil
	}
	return console.Refusedf("name another file", "%s exists and is not a snapshot: %v", path, err)
}

func runInspect(c *cli.Context, e *console.Env, path string) error {
	passphrase, err := readPassphrase(c.Context, c.String("passphrase-file"))
	if err != nil {
		return err
	}
	h, encrypted, err := inspectSnapshot(c.Context, path, passphrase)
	if err != nil {
		return err
	}
	return showHeader(e, c, h, encrypted)
}

// showHeader shows a header and, as scripts know it, whether the file is encrypted.
func showHeader(e *console.Env, c *cli.Context, h archive.Header, encrypted bool) error {
	out := struct {
		archive.Header
		Encrypted bool `json:"encrypted"`
	}{h, encrypted}
	return e.PrintValue(c, out, func(s *console.Screen) { headerText(s, h, encrypted, time.Now()) })
}

func inspectSnapshot(ctx context.Context, path, passphrase string) (h archive.Header, encrypted bool, err error) {
	f, err := console.OpenInput(ctx, path)
	if err != nil {
		return h, false, err
	}
	defer f.Close()
	plain, encrypted, err := decryptSnapshot(f, passphrase)
	if err == nil {
		h, err = archive.Inspect(plain)
	}
	return h, encrypted, snapshotProblem(path, err)
}

// snapshotProblem names the file that cannot be read, and the option that may be missing.
func snapshotProblem(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNeedsPassphrase), errors.Is(err, errPassphrase):
		return console.Usagef("--passphrase-file FILE", "%s: %v", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func runRestore(c *cli.Context, e *console.Env, path string) error {
	passphrase, err := readPassphrase(c.Context, c.String("passphrase-file"))
	if err != nil {
		return err
	}
	f, err := console.OpenInput(c.Context, path)
	if err != nil {
		return err
	}
	defer f.Close()
	unsealed, _, err := decryptSnapshot(f, passphrase)
	if err != nil {
		return snapshotProblem(path, err)
	}
	h, content, err := archive.Read(unsealed)
	if err != nil {
		return snapshotProblem(path, err)
	}
	if c.Bool("dry-run") {
		return forecastRestore(c, e, h)
	}
	if err := consentToRestore(e, c, h); err != nil {
		return err
	}
	var plain bytes.Buffer // to our own socket only
	if err := archive.Write(&plain, h, content); err != nil {
		return err
	}
	r := adminapi.RestoreRequest{Wait: c.Bool("wait"), Timeout: c.Duration("timeout"), Force: c.Bool("force")}
	return console.RunOperation(c, e, func(client *adminapi.Client, ctx context.Context,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.RestoreSnapshot(ctx, r, &plain, p)
	})
}

// consentToRestore asks before this node becomes what is in the file. With --force that ends a cluster that others may
// still work in, so that the answer is its name.
func consentToRestore(e *console.Env, c *cli.Context, h archive.Header) error {
	if c.Bool("force") {
		return e.ConsentByName(c, "the id of the cluster whose members may have to step down", h.ClusterID)
	}
	return e.AskConsent(c, fmt.Sprintf("turn this node into the cluster %s as of %s (%s), with one member?", console.Clean(h.ClusterID),
		console.Clean(h.Node), console.FormatStamp(h.Created)))
}

func forecastRestore(c *cli.Context, e *console.Env, h archive.Header) error {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	if err != nil {
		return err
	}
	f := dryrun.Forecast{Node: st.Node.ID, Effects: []string{
		fmt.Sprintf("the file can be read: the cluster %s as it was on %s, %s", h.ClusterID, h.Node, console.FormatStamp(h.Created)),
		fmt.Sprintf("%s would be that cluster, alone, with its identity %s and %s", st.Node.ID, h.IdentityFingerprint,
			wording.Plural(h.Keys.Accepted, "accepted key")),
	}}
	if others := slices.DeleteFunc(slices.Clone(h.Members),
		func(id string) bool { return id == st.Node.ID }); len(others) > 0 {
		f.Effects = append(f.Effects, "its other members would have to join again: "+strings.Join(others, ", "))
	}
	switch {
	case st.Cluster != nil:
		f.Refused = fmt.Sprintf("%s belongs to the cluster %s", st.Node.ID, st.Cluster.ID)
	case !c.Bool("force"):
		f.Effects = append(f.Effects,
			"it would be refused while a member of that cluster answers, which only the restore itself checks")
	}
	return dryrun.ShowPlan(e, c, f)
}

// readPassphrase returns the first line of a file; nothing when none is named.
func readPassphrase(ctx context.Context, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := console.OpenInput(ctx, path)
	if err != nil {
		return "", fmt.Errorf("passphrase file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, console.MaxSecret+1))
	line, _, _ := strings.Cut(string(text), "\n")
	if err == nil {
		err = console.CheckLength(len(line))
	}
	if err != nil {
		return "", fmt.Errorf("passphrase file %s: %w", path, err)
	}
	if line = strings.TrimRight(line, "\r"); len(line) < 8 {
		return "", console.Usagef("openssl rand -base64 24", "the passphrase in %s has less than 8 characters", path)
	}
	return line, nil
}

func headerText(s *console.Screen, h archive.Header, encrypted bool, now time.Time) {
	sealed := "no"
	if encrypted {
		sealed = "yes"
	}
	rows := [][]console.Cell{
		{console.Txt("cluster"), console.Txt(fmt.Sprintf("%s  uuid %s  generation %d", h.ClusterID, h.UUID, h.Generation))},
		{console.Txt("identity"), console.Txt(h.IdentityFingerprint)},
		{console.Txt("saved"), console.Txt(fmt.Sprintf("%s (%s ago) on %s with saltclusterd %s", console.FormatStamp(h.Created),
			console.FormatAge(now.Sub(h.Created)), h.Node, h.Version))},
		{console.Txt("log"), console.Txt(fmt.Sprintf("entry %d, revision %d, epoch %d", h.Index, h.Rev, h.Epoch))},
		{console.Txt("members"), console.Txt(strings.Join(h.Members, " "))},
		{console.Txt("keys"), console.Txt(fmt.Sprintf("%d accepted, %d pending, %d rejected, %d denied, %d deleted", h.Keys.Accepted,
			h.Keys.Pending, h.Keys.Rejected, h.Keys.Denied, h.Keys.Deleted))},
		{console.Txt("encrypted"), console.Txt(sealed)},
	}
	s.PrintTable("", nil, rows)
}
