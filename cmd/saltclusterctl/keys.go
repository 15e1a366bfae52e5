package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newKeysCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "keys",
		Usage: "look at the minion keys of the cluster, and decide about them",
		Description: "salt-key on any master does the same, and is noticed; this needs no salt-master and says who decided what, when and where.\n" +
			"MINION may be a pattern as Salt has them (web*).",
		Subcommands: []*cli.Command{
			newKeysListCommand(e), newKeysShowCommand(e), newKeysHistoryCommand(e), newKeysCollectCommand(e),
			newKeysMergeCommand(e),
			newKeysHeldCommand(e),
			newKeysDecideCommand(e, "accept", adminapi.KeyAccepted, "let minions in, in the whole cluster", adminapi.KeyPending),
			newKeysDecideCommand(e, "reject", adminapi.KeyRejected, "keep minions out; what they have is worth nothing any more",
				""),
			newKeysDecideCommand(e, "delete", adminapi.KeyDeleted,
				"forget keys; what they have is worth nothing any more, but they may ask again", ""),
		},
		Action: func(c *cli.Context) error {
			return noSuchWord(c, "saltclusterctl keys --help",
				"list, show, history, held, collect, merge, accept, reject or delete")
		},
	})
}

var keyStates = []string{adminapi.KeyAccepted, adminapi.KeyPending, adminapi.KeyRejected, adminapi.KeyDenied}

func newKeysListCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "list", ArgsUsage: "[accepted|pending|rejected|denied] [MINION]",
		Usage: "list keys",
		Action: func(c *cli.Context) error {
			q, args := adminapi.KeyQuery{}, c.Args().Slice()
			if len(args) > 0 && slices.Contains(keyStates, args[0]) {
				q.State, args = args[0], args[1:]
			}
			if len(args) > 1 {
				return usagef("saltclusterctl keys list pending 'web*'", "keys list takes a state and one pattern")
			}
			q.Match = strings.Join(args, "")
			return showKeys(c, e, q)
		},
	})
}

func newKeysHistoryCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "history", ArgsUsage: "[MINION]",
		Usage:       "list the last decision about each key, the newest first: who, when, why",
		Description: "Deletions are remembered for 180 days.",
		Flags:       []cli.Flag{&cli.IntFlag{Name: "n", Aliases: []string{"count"}, Value: 50, Usage: "list `N` decisions"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("saltclusterctl keys history 'web*'", "keys history takes one pattern")
			}
			return showKeys(c, e, adminapi.KeyQuery{History: true, Match: c.Args().First(), Limit: max(c.Int("n"), 1)})
		},
	})
}

func newKeysShowCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "show", ArgsUsage: "MINION",
		Usage: "show the key of one minion, with its fingerprint, and what was denied for it",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl keys show web1", "keys show takes the id of one minion")
			}
			keys, err := askKeys(c, e, adminapi.KeyQuery{ID: c.Args().First()})
			if err != nil {
				return err
			}
			if len(keys.Keys) == 0 {
				return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl keys list", "the cluster knows no key of %s",
					c.Args().First())
			}
			return e.printValue(c, keys, func(s *screen) { keyFacts(s, keys.Keys) })
		},
	})
}

func askKeys(c *cli.Context, e *env, q adminapi.KeyQuery) (adminapi.Keys, error) {
	return askAdmin(c, e, func(client *adminapi.Client,
		ctx context.Context) (adminapi.Keys, error) {
		return client.Keys(ctx, q)
	})
}

// allKeys asks until nothing is left, however many there are. What denied keys there are follows with each part.
func allKeys(c *cli.Context, e *env, q adminapi.KeyQuery) (adminapi.Keys, error) {
	all, err := askKeys(c, e, q)
	for part := all; err == nil && part.More > 0; {
		next, ok := part.Next(q)
		if !ok {
			return all, adminapi.Errorf(adminapi.CodeRefused, "name a narrower pattern",
				"%d of the keys that match cannot be listed: nothing was done", part.More)
		}
		q = next
		if part, err = askKeys(c, e, q); err == nil {
			all.Keys, all.Rev, all.More = append(all.Keys, part.Keys...), part.Rev, part.More
		}
	}
	return all, err
}

func showKeys(c *cli.Context, e *env, q adminapi.KeyQuery) error {
	keys, err := askKeys(c, e, q)
	if err != nil {
		return err
	}
	return e.printValue(c, keys, func(s *screen) { keysTable(s, keys) })
}

func keysTable(s *screen, keys adminapi.Keys) {
	rows := make([][]cell, 0, len(keys.Keys))
	for _, k := range keys.Keys {
		rows = append(rows, []cell{txt(k.ID), keyStateCell(k.State), txt(keyTime(k)), txt(k.By), txt(k.Cause)})
	}
	s.printTable("", []string{"MINION", "STATE", "SINCE", "DECIDED ON", "BY"}, rows)
	s.line("%s", countsText(keys.Counts))
	if keys.More > 0 {
		s.line("%s", s.paint(yellow, fmt.Sprintf("%d more are not listed; name a pattern", keys.More)))
	}
}

func keyFacts(s *screen, keys []adminapi.MinionKey) {
	for i, k := range keys {
		if i > 0 {
			s.line("")
		}
		s.line("%s  %s", s.paint(bold, clean(k.ID)), s.paint(keyStateCell(k.State).tint, k.State))
		rows := [][]cell{}
		for _, f := range [][2]string{
			{"fingerprint", k.Fingerprint}, {"since", keyTime(k)}, {"decided on", k.By}, {"by", k.Cause},
			{"revision", strconv.FormatUint(k.Rev, 10)},
		} {
			rows = append(rows, []cell{{text: f[0]}, txt(f[1])})
		}
		s.printTable("  ", nil, rows)
	}
	s.line("on the minion, to compare: salt-call --local key.finger")
}

func keyTime(k adminapi.MinionKey) string {
	if k.At.IsZero() {
		return ""
	}
	return formatStamp(k.At)
}

func keyStateCell(state string) cell {
	switch state {
	case adminapi.KeyAccepted:
		return txt(state).withTint(green)
	case adminapi.KeyPending:
		return txt(state).withTint(yellow)
	}
	return txt(state).withTint(red)
}

// newKeysDecideCommand makes accept, reject and delete. from is the state a pattern is limited to; empty: any.
func newKeysDecideCommand(e *env, name, to, usage, from string) *cli.Command {
	return completeCommand(&cli.Command{
		Name: name, ArgsUsage: "MINION...", Usage: usage,
		Flags: []cli.Flag{
			yesFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "only list what would be decided about"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usagef("saltclusterctl keys "+name+" 'web*'", "keys %s takes ids of minions, or patterns", name)
			}
			return runKeysDecide(c, e, name, to, from)
		},
	})
}

func runKeysDecide(c *cli.Context, e *env, name, to, from string) error {
	chosen, err := chooseKeys(c, e, to, from)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") || len(chosen.Keys) == 0 {
		return e.printValue(c, chosen, func(s *screen) { keysTable(s, chosen) })
	}
	ids := make([]string, 0, len(chosen.Keys))
	for _, k := range chosen.Keys {
		ids = append(ids, k.ID)
	}
	if err := e.askConsent(c, fmt.Sprintf("%s %s: %s?", name, plural(len(ids), "key"),
		clean(strings.Join(ids[:min(len(ids), 10)], " ")))); err != nil {
		return err
	}
	return e.decideKeys(c, ids, to)
}

func (e *env) showDecided(c *cli.Context, all adminapi.DecidedKeys, to string) error {
	failed := 0
	err := e.printValue(c, all, func(s *screen) {
		for _, k := range all.Keys {
			if k.Error != "" {
				s.line("%s: %s", clean(k.ID), s.paint(red, clean(k.Error)))
				continue
			}
			s.line("%s: %s", clean(k.ID), s.paint(green, to))
		}
	})
	for _, k := range all.Keys {
		if k.Error != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		return &silentError{exitRefused}
	}
	return err
}

// chooseKeys finds what the arguments mean. An id without a pattern is taken in whatever state it is.
func chooseKeys(c *cli.Context, e *env, to, from string) (adminapi.Keys, error) {
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
