package keys

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func NewKeysCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "keys",
		Usage: "show the minion keys of the cluster, and decide about them",
		Description: "salt-key on any master does the same, and the cluster follows it. These commands need no salt-master, and show who decided what,\n" +
			"when and where.\n" +
			"MINION may be a pattern as in Salt (web*).",
		Subcommands: []*cli.Command{
			newKeysListCommand(e), newKeysShowCommand(e), newKeysHistoryCommand(e), newKeysCollectCommand(e),
			newKeysMergeCommand(e),
			newKeysHeldCommand(e),
			newKeysDecideCommand(e, "accept", adminapi.KeyAccepted, "accept minions in the whole cluster", adminapi.KeyPending),
			newKeysDecideCommand(e, "reject", adminapi.KeyRejected, "refuse minions; their credentials become invalid", ""),
			newKeysDecideCommand(e, "delete", adminapi.KeyDeleted,
				"forget keys; the minions' credentials become invalid, but they may ask again", ""),
		},
		Action: console.NoSuchWord("saltclusterctl keys --help",
			"list, show, history, held, collect, merge, accept, reject or delete"),
	})
}

var keyStates = []string{adminapi.KeyAccepted, adminapi.KeyPending, adminapi.KeyRejected, adminapi.KeyDenied}

func newKeysListCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "list", ArgsUsage: "[accepted|pending|rejected|denied] [MINION]",
		Usage: "list keys",
		Action: func(c *cli.Context) error {
			q, args := adminapi.KeyQuery{}, c.Args().Slice()
			if len(args) > 0 && slices.Contains(keyStates, args[0]) {
				q.State, args = args[0], args[1:]
			}
			if len(args) > 1 {
				return console.Usagef("saltclusterctl keys list pending 'web*'", "keys list takes a state and one pattern")
			}
			q.Match = strings.Join(args, "")
			return showKeys(c, e, q)
		},
	})
}

func newKeysHistoryCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "history", ArgsUsage: "[MINION]",
		Usage:       "list the last decision about each key, the newest first: who, when, why",
		Description: "Deletions are remembered for 180 days.",
		Flags:       []cli.Flag{&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 50, Usage: "list `N` decisions"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return console.Usagef("saltclusterctl keys history 'web*'", "keys history takes one pattern")
			}
			return showKeys(c, e, adminapi.KeyQuery{History: true, Match: c.Args().First(), Limit: max(c.Int("n"), 1)})
		},
	})
}

func newKeysShowCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "show", ArgsUsage: "MINION",
		Usage: "show the key of one minion, with its fingerprint, and what was denied for it",
		Action: console.WithOneArg(e, "saltclusterctl keys show web1",
			"keys show takes the id of one minion", func(c *cli.Context, e *console.Env) error {
				keys, err := askKeys(c, e, adminapi.KeyQuery{ID: c.Args().First()})
				if err != nil {
					return err
				}
				if len(keys.Keys) == 0 {
					return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl keys list", "the cluster has no key of %s",
						c.Args().First())
				}
				return e.PrintValue(c, keys, func(s *console.Screen) { KeyFacts(s, keys.Keys) })
			}),
	})
}

func askKeys(c *cli.Context, e *console.Env, q adminapi.KeyQuery) (adminapi.Keys, error) {
	return console.AskAdmin(c, e, console.With((*adminapi.Client).Keys, q))
}

// allKeys asks until nothing is left, however many there are. What denied keys there are follows with each part.
func allKeys(c *cli.Context, e *console.Env, q adminapi.KeyQuery) (adminapi.Keys, error) {
	all, err := askKeys(c, e, q)
	for part := all; err == nil && part.More > 0; {
		next, ok := part.Next(q)
		if !ok {
			return all, adminapi.Errorf(adminapi.CodeRefused, "use a narrower pattern",
				"%d of the keys that match cannot be listed: nothing was done", part.More)
		}
		q = next
		if part, err = askKeys(c, e, q); err == nil {
			all.Keys, all.Rev, all.More = append(all.Keys, part.Keys...), part.Rev, part.More
		}
	}
	return all, err
}

func showKeys(c *cli.Context, e *console.Env, q adminapi.KeyQuery) error {
	keys, err := askKeys(c, e, q)
	if err != nil {
		return err
	}
	return e.PrintValue(c, keys, func(s *console.Screen) { keysTable(s, keys) })
}

func keysTable(s *console.Screen, keys adminapi.Keys) {
	rows := make([][]console.Cell, 0, len(keys.Keys))
	for _, k := range keys.Keys {
		rows = append(rows, []console.Cell{console.Txt(k.ID), keyStateCell(k.State), console.Txt(keyTime(k)),
			console.Txt(k.By), console.Txt(k.Cause)})
	}
	s.PrintTable("", []string{"MINION", "STATE", "SINCE", "DECIDED ON", "BY"}, rows)
	s.Line("%s", countsText(keys.Counts))
	if keys.More > 0 {
		s.Line("%s", s.Paint(console.Yellow, fmt.Sprintf("%d more are not listed; name a pattern", keys.More)))
	}
}

func KeyFacts(s *console.Screen, keys []adminapi.MinionKey) {
	for i, k := range keys {
		if i > 0 {
			s.Line("")
		}
		s.Line("%s  %s", s.Paint(console.Bold, console.Clean(k.ID)), s.Paint(keyStateCell(k.State).Tint, k.State))
		rows := [][]console.Cell{}
		for _, f := range [][2]string{
			{"fingerprint", k.Fingerprint}, {"since", keyTime(k)}, {"decided on", k.By}, {"by", k.Cause},
			{"revision", strconv.FormatUint(k.Rev, 10)},
		} {
			rows = append(rows, []console.Cell{{Text: f[0]}, console.Txt(f[1])})
		}
		s.PrintTable("  ", nil, rows)
	}
	s.Line("on the minion, to compare: salt-call --local key.finger")
}

func keyTime(k adminapi.MinionKey) string {
	if k.At.IsZero() {
		return ""
	}
	return console.FormatStamp(k.At)
}

func keyStateCell(state string) console.Cell {
	switch state {
	case adminapi.KeyAccepted:
		return console.Txt(state).WithTint(console.Green)
	case adminapi.KeyPending:
		return console.Txt(state).WithTint(console.Yellow)
	}
	return console.Txt(state).WithTint(console.Red)
}

// newKeysDecideCommand makes accept, reject and delete. from is the state a pattern is limited to; empty: any.
func newKeysDecideCommand(e *console.Env, name, to, usage, from string) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: name, ArgsUsage: "MINION...", Usage: usage,
		Flags: []cli.Flag{
			console.YesFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "only list the keys that would change"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return console.Usagef("saltclusterctl keys "+name+" 'web*'", "keys %s takes ids of minions, or patterns", name)
			}
			return runKeysDecide(c, e, name, to, from)
		},
	})
}

func runKeysDecide(c *cli.Context, e *console.Env, name, to, from string) error {
	chosen, err := chooseKeys(c, e, to, from)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") || len(chosen.Keys) == 0 {
		return e.PrintValue(c, chosen, func(s *console.Screen) { keysTable(s, chosen) })
	}
	ids := make([]string, 0, len(chosen.Keys))
	for _, k := range chosen.Keys {
		ids = append(ids, k.ID)
	}
	if err := e.AskConsent(c, fmt.Sprintf("%s %s: %s?", name, wording.Plural(len(ids), "key"),
		console.Clean(strings.Join(ids[:min(len(ids), 10)], " ")))); err != nil {
		return err
	}
	return decideKeys(e, c, ids, to)
}

func showDecided(e *console.Env, c *cli.Context, all adminapi.DecidedKeys, to string) error {
	failed := 0
	err := e.PrintValue(c, all, func(s *console.Screen) {
		for _, k := range all.Keys {
			if k.Error != "" {
				s.Line("%s: %s", console.Clean(k.ID), s.Paint(console.Red, console.Clean(k.Error)))
				continue
			}
			s.Line("%s: %s", console.Clean(k.ID), s.Paint(console.Green, to))
		}
	})
	for _, k := range all.Keys {
		if k.Error != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		return console.SilentError(console.ExitRefused)
	}
	return err
}

// chooseKeys finds what the arguments mean. An id without a pattern is taken in whatever state it is.
func chooseKeys(c *cli.Context, e *console.Env, to, from string) (adminapi.Keys, error) {
	var all adminapi.Keys
	seen := map[string]bool{}
	for _, arg := range c.Args().Slice() {
		q := adminapi.KeyQuery{ID: arg}
		pattern := strings.ContainsAny(arg, "*?[")
		if pattern {
			q = adminapi.KeyQuery{Match: arg, State: from}
		}
		found, err := allKeys(c, e, q)
		if err != nil {
			return all, err
		}
		all.From, all.Rev, all.Counts = found.From, found.Rev, map[string]int{}
		hits := 0
		for _, k := range found.Keys {
			if k.State == adminapi.KeyDenied || k.State == adminapi.KeyDeleted || k.State == to {
				continue
			}
			hits++
			if !seen[k.ID] {
				seen[k.ID] = true
				all.Keys = append(all.Keys, k)
			}
		}
		if hits == 0 && !pattern {
			return all, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl keys list",
				"there is no key of %s that could become %s", arg, to)
		}
	}
	for _, k := range all.Keys {
		all.Counts[k.State]++
	}
	return all, nil
}
