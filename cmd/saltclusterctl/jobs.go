package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newJobsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "jobs",
		Usage: "show the jobs of all masters",
		Description: "salt-run jobs.* shows the jobs that this node keeps: its own, and with up to cluster_job_replicas nodes all of them.\n" +
			"This command asks the other nodes for the rest.",
		Subcommands: []*cli.Command{newJobsListCommand(e), newJobsShowCommand(e)},
		Action:      console.NoSuchWord("saltclusterctl jobs --help", "list or show"),
	})
}

func newJobsListCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "list",
		Usage: "list the newest jobs of the cluster, and which nodes keep them",
		Flags: []cli.Flag{console.WideFlag(), &cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 50, Usage: "list `N` jobs"}},
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, console.With((*adminapi.Client).ListJobs, c.Int("n")),
				func(s *console.Screen, list adminapi.JobList) { jobsScreen(s, list, time.Now()) })
		}),
	})
}

func newJobsShowCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "show", ArgsUsage: "JID",
		Usage: "show a job and its returns, whichever node keeps it",
		Action: console.WithOneArg(e, "saltclusterctl jobs list",
			"jobs show takes one argument, a job id", func(c *cli.Context, e *console.Env) error {
				job, err := console.AskAdmin(c, e, console.With((*adminapi.Client).ShowJob, c.Args().First()))
				if err != nil {
					return err
				}
				// without it the publisher is not shown
				ring, _ := console.AskAdmin(c, e,
					console.With((*adminapi.Client).RingInfo, adminapi.RingQuery{JID: c.Args().First()}))
				shown := shownJob{Job: job, Missing: missingReturns(job)}
				if o := ring.Owner; o != nil && o.By == adminapi.OwnerByPublisher {
					shown.Publisher, shown.PublisherAway = o.Node, isAway(ring, o.Node)
				}
				return e.PrintValue(c, shown, func(s *console.Screen) { jobScreen(s, shown) })
			}),
	})
}

// shownMissing bounds what a person is shown of the minions that have not returned; --out json has all.
const shownMissing = 50

// jobTime is the layout of what a job id begins with, UTC.
const jobTime = "20060102150405"

// jobStamp returns when a job was published, as far as its id tells.
func jobStamp(jid string) string {
	at, err := time.Parse(jobTime, jid[:min(len(jid), len(jobTime))])
	if err != nil {
		return ""
	}
	return console.FormatStamp(at)
}

// jobAge returns how long ago a job was published, as far as its id tells.
func jobAge(jid string, now time.Time) string {
	at, err := time.Parse(jobTime, jid[:min(len(jid), len(jobTime))])
	if err != nil {
		return ""
	}
	return console.FormatAge(now.Sub(at))
}

func jobsScreen(s *console.Screen, list adminapi.JobList, now time.Time) {
	rows := make([][]console.Cell, 0, len(list.Jobs))
	for _, j := range list.Jobs {
		of := "?"
		if j.Minions > 0 {
			of = strconv.Itoa(j.Minions)
		}
		row := []console.Cell{
			console.Txt(j.JID), console.Txt(jobAge(j.JID, now)), console.Txt(j.Function).WithCut(),
			console.Txt(j.Target).WithCut(),
			{Text: fmt.Sprintf("%d of %s", j.Returned, of), Right: true}, console.Txt(strings.Join(j.Nodes, " ")).WithCut(),
		}
		if s.Wide {
			row = append(row, console.Txt(j.User), console.Txt(jobStamp(j.JID)))
		}
		rows = append(rows, row)
	}
	head := []string{"JID", "AGE", "FUNCTION", "TARGET", "RETURNED", "NODES"}
	if s.Wide {
		head = append(head, "USER", "PUBLISHED")
	}
	s.PrintTable("", head, rows)
	s.PrintMissing(list.Missing)
}

// shownJob is a job with what can be said about it.
type shownJob struct {
	adminapi.Job
	Publisher string   `json:"publisher,omitempty"` // the node it was published on, while that is remembered
	Missing   []string `json:"missing,omitempty"`   // minions that were expected to return and have not
	// PublisherAway: returns are kept for it, and their events fire when it is back or has been removed.
	PublisherAway bool `json:"publisher_away,omitempty"`
}

// isAway says whether a node is not there to take returns.
func isAway(ring adminapi.RingInfo, id string) bool {
	return slices.ContainsFunc(ring.Nodes, func(n adminapi.RingNode) bool {
		return n.ID == id && n.State != adminapi.StateAlive
	})
}

// missingReturns compares the minions that were expected with those that returned.
func missingReturns(job adminapi.Job) []string {
	expected, ok := job.Minions.([]any)
	if !ok || job.Cut {
		return nil
	}
	var out []string
	for _, v := range expected {
		id, isText := v.(string)
		if _, returned := job.Returns[id]; isText && !returned {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func jobScreen(s *console.Screen, job shownJob) {
	rows := [][]console.Cell{}
	if job.Publisher != "" {
		rows = append(rows, []console.Cell{{Text: "published on"}, console.Txt(job.Publisher)})
	}
	for _, f := range []struct {
		name string
		v    any
	}{
		{"function", job.Function}, {"arguments", job.Arguments}, {"target", job.Target}, {"target type", job.TargetType},
		{"user", job.User}, {"minions", job.Minions},
	} {
		if f.v != nil {
			rows = append(rows, []console.Cell{{Text: f.name}, console.Txt(plainText(f.v))})
		}
	}
	s.Line("%s  %s, kept by %s", s.Paint(console.Bold, "job"), console.Clean(job.JID), console.Clean(job.Node))
	s.PrintTable("  ", nil, rows)
	for _, id := range slices.Sorted(maps.Keys(job.Returns)) {
		s.Line("%s  %s", s.Paint(console.Bold, console.Clean(id)), console.Clean(plainText(job.Returns[id].Return)))
	}
	if expected, ok := job.Minions.([]any); ok {
		s.Line("%d of %d returned", len(job.Returns), len(expected))
	} else {
		s.Line("%s", wording.Plural(len(job.Returns), "return"))
	}
	if len(job.Missing) > 0 {
		s.Wrapped("", "%s", s.Paint(console.Yellow, console.Clean("missing: "+strings.Join(job.Missing[:min(len(job.Missing), shownMissing)], " "))))
		if more := len(job.Missing) - shownMissing; more > 0 {
			s.Line("and %d more", more)
		}
		if job.PublisherAway {
			s.Wrapped("-> ", "%s does not answer: returns are kept for it, and their events fire when it is back or has been removed (saltclusterctl status)",
				console.Clean(job.Publisher))
		}
		s.Wrapped("-> ", "a minion that needs longer returns later; saltclusterctl doctor --message 'Minion did not return'")
	}
	if job.Cut {
		s.Line("%s", s.Paint(console.Yellow, "more are left out: the job is too large to be shown in full"))
	}
}

// plainText is a value as people write it: text without quotes, anything else as JSON.
func plainText(v any) string {
	if t, ok := v.(string); ok {
		return t
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// jobRows tell how far jobs are replicated.
func jobRows(j *adminapi.Jobs) [][]console.Cell {
	if j == nil {
		return nil
	}
	if j.Off != "" {
		return [][]console.Cell{{{Text: "jobs"}, console.Txt("not replicated: " + j.Off)}}
	}
	rows := [][]console.Cell{{{Text: "jobs"}, console.Txt(wording.Plural(j.Known, "job") + " kept here")}}
	for _, p := range j.Peers {
		switch {
		case p.Error != "":
			rows = append(rows, []console.Cell{{}, console.Txt(p.Node + " does not get them: " + p.Error).WithTint(console.Yellow)})
		case p.Off:
			rows = append(rows, []console.Cell{{}, console.Txt(p.Node + " keeps no jobs of others")})
		case p.All || p.Waiting > 0 || p.Differ > 0:
			rows = append(rows, []console.Cell{{}, console.Txt(fmt.Sprintf("%s: %s to send, %s", p.Node, wording.Plural(p.Waiting, "return"),
				differText(p)))})
		}
	}
	if j.Unknown > 0 {
		rows = append(rows, []console.Cell{{}, console.Txt(wording.Plural(j.Unknown, "job") +
			" more than can be compared: lower keep_jobs_seconds").WithTint(console.Yellow)})
	}
	return rows
}

func differText(p adminapi.JobPeer) string {
	if p.All {
		return "all jobs to compare"
	}
	return wording.Plural(p.Differ, "job") + " to compare"
}
