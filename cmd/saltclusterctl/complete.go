package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// What a word on the command line can be that only the cluster knows.
const (
	nodeWords   = "nodes"
	minionWords = "minions"
	jobWords    = "jobs"
)

const (
	// maxCompleted bounds the words that a shell is offered.
	maxCompleted = 200
	// completeTimeout is how long a shell waits after Tab was pressed.
	completeTimeout = 2 * time.Second
)

// safeWord is what may get into a shell: an id of anything else is not offered.
var safeWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

// newCompleteCommand is what completion of shells calls. It is silent where nothing is known.
func newCompleteCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "complete", ArgsUsage: "nodes|minions|jobs [PREFIX]", Hidden: true,
		Usage: "print the ids that begin with PREFIX, for the completion of shells",
		Action: func(c *cli.Context) error {
			ctx, cancel := context.WithTimeout(c.Context, completeTimeout)
			defer cancel()
			client := e.OpenClient(c)
			defer client.Close()
			prefix := c.Args().Get(1)
			words, err := clusterWords(ctx, client, c.Args().First(), prefix)
			if err != nil {
				return console.SilentError(console.ExitError)
			}
			words = slices.DeleteFunc(words, func(w string) bool {
				return !strings.HasPrefix(w, prefix) || !safeWord.MatchString(w)
			})
			for _, w := range words[:min(len(words), maxCompleted)] {
				fmt.Fprintln(e.Stdout, w)
			}
			return nil
		},
	})
}

// clusterWords asks for words of a kind.
func clusterWords(ctx context.Context, client *adminapi.Client, kind, prefix string) (words []string, err error) {
	switch kind {
	case nodeWords:
		var all adminapi.Members
		all, err = client.Members(ctx)
		for _, m := range all.Members {
			words = append(words, m.ID)
		}
	case minionWords:
		q := adminapi.KeyQuery{Limit: maxCompleted}
		if prefix != "" {
			if !safeWord.MatchString(prefix) {
				return nil, nil
			}
			q.Match = prefix + "*"
		}
		var all adminapi.Keys
		all, err = client.Keys(ctx, q)
		for _, k := range all.Keys {
			words = append(words, k.ID)
		}
		slices.Sort(words)
		words = slices.Compact(words) // a denied key may also be accepted
	case jobWords:
		var all adminapi.JobList
		all, err = client.ListJobs(ctx, maxCompleted)
		for _, j := range all.Jobs {
			words = append(words, j.JID)
		}
	}
	return words, err
}

// wordsAfter says what follows a placeholder; empty: nothing that the cluster knows.
func wordsAfter(usage string) string {
	switch {
	case strings.Contains(usage, "NODE"):
		return nodeWords
	case strings.Contains(usage, "MINION"):
		return minionWords
	case strings.Contains(usage, "JID"):
		return jobWords
	}
	return ""
}

// wordsOfFlag says what follows a flag.
func wordsOfFlag(name string) string {
	switch name {
	case "--node":
		return nodeWords
	case "--minion":
		return minionWords
	case "--jid":
		return jobWords
	}
	return ""
}
