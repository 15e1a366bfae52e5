package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

func newKeysCollectCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "collect", ArgsUsage: "FILE",
		Usage: "write the minion keys of this host's salt-master to FILE, for keys merge on a node of the cluster",
		Description: "For a salt-master that is not a node yet and shares its minions with one that is, or will be. It reads the master's key\n" +
			"directories (with 3008 its key store as well) and changes nothing. FILE contains public keys and their states, and no secrets;\n" +
			"- is standard output.",
		Flags: append([]cli.Flag{&cli.StringFlag{Name: "node",
			Usage: "`ID` of the node that this master becomes; default: the host's name"}}, adopt.HostFlags()...),
		Action: console.WithOneArg(e, "saltclusterctl keys collect m2.keys",
			"keys collect takes the name of one file", runKeysCollect),
	})
}

// collected is what the verb shows.
type collected struct {
	Name     string         `json:"name"`
	File     string         `json:"file"`
	Salt     string         `json:"salt"`
	From     string         `json:"from"` // the directory
	Identity string         `json:"identity"`
	Counts   map[string]int `json:"counts"`
	Odd      []string       `json:"odd"` // files that hold no key
}

func runKeysCollect(c *cli.Context, e *console.Env) error {
	path := c.Args().First()
	if err := checkReplaceable(path); err != nil {
		return err
	}
	site, err := adopt.InspectMaster(e, c)
	if err != nil {
		return err
	}
	set, invalid, err := collectKeys(e, c, site)
	if err != nil {
		return err
	}
	out := collected{
		Name: set.Name, File: path, Salt: set.Salt, From: site.KeysDir, Identity: set.Identity, Counts: set.Counts(),
		Odd: invalid,
	}
	if path == "-" {
		return keyset.Encode(e.Stdout, set)
	}
	write := func(w io.Writer) error { return keyset.Encode(w, set) }
	if err := durable.Write(path, durable.Options{Mode: 0o600}, write); err != nil {
		return err
	}
	return e.PrintValue(c, out, func(s *console.Screen) { collectedScreen(s, out) })
}

// checkReplaceable says whether a file may be written: it is not there, or one that collect has written.
func checkReplaceable(path string) error {
	if path == "-" {
		return nil
	}
	f, err := console.OpenReplaced(path)
	if f == nil {
		return err
	}
	defer f.Close()
	if _, err := keyset.Decode(f); err != nil {
		return console.Refusedf("name another file", "%s is there: %v", path, err)
	}
	return nil
}

func collectKeys(e *console.Env, c *cli.Context, site *adopt.Site) (keyset.Set, []string, error) {
	set := keyset.Set{Name: cmp.Or(c.String("node"), site.Own.ID), At: time.Now().UTC().Truncate(time.Second),
		Salt: site.Master.Version.String()}
	if _, err := node.ParseID(set.Name); err != nil || set.Name == keyset.Cluster {
		return set, nil, console.Usagef("--node m2", "%q cannot be the name of a node", set.Name)
	}
	set.Identity = site.Identity()
	if set.Identity == "" && !errors.Is(site.KeyErr, fs.ErrNotExist) {
		return set, nil, console.Refusedf("run it as root; --config-dir DIR says where the salt-master's configuration is",
			"the salt-master's own key: %v", site.KeyErr)
	}
	keys, invalid, err := keyset.Collect(c.Context, site.KeysDir, adopt.Store(site.Master))
	if err != nil {
		return set, nil, console.Refusedf("run it as root", "%v", err)
	}
	set.Keys = keys
	return set, invalid, nil
}

func collectedScreen(s *console.Screen, out collected) {
	s.Line("%s: %s of the salt-master %s, from %s", console.Clean(out.Name), countsText(out.Counts), console.Clean(out.Salt),
		console.Clean(out.From))
	if out.Identity != "" {
		s.Line("its minions trust the master key %s", console.Clean(out.Identity))
	}
	for _, path := range out.Odd {
		s.Line("%s", s.Paint(console.Yellow, "left out because it is not a public key: "+console.Clean(path)))
	}
	s.Line("written: %s", console.Clean(out.File))
	console.NextSteps(s, []string{
		"copy " + out.File + " to a node of the cluster; it holds no secret",
		"saltclusterctl keys merge " + filepath.Base(out.File) + ": there",
	})
}

// countsText lists numbers of keys by state.
func countsText(counts map[string]int) string {
	parts := []string{}
	for _, state := range keyStates {
		if n := counts[state]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+state)
		}
	}
	if len(parts) == 0 {
		return "no keys"
	}
	return strings.Join(parts, ", ")
}

// readSet reads a file of keys collect.
func readSet(ctx context.Context, path string) (keyset.Set, error) {
	f, err := console.OpenInput(ctx, path)
	if err != nil {
		return keyset.Set{}, err
	}
	defer f.Close()
	set, err := keyset.Decode(f)
	if err != nil {
		return set, console.Refusedf("saltclusterctl keys collect FILE, on that salt-master's host, makes one", "%s: %v", path, err)
	}
	return set, nil
}

// sourceText names a set and where it comes from.
func sourceText(set keyset.Set, path string) string {
	return fmt.Sprintf("%s (%s, %s, Salt %s)", console.Clean(set.Name), console.Clean(path), console.FormatStamp(set.At), console.Clean(cmp.Or(set.Salt, "?")))
}
