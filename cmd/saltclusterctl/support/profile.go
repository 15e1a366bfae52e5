package support

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func NewProfileCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "profile", ArgsUsage: "FILE",
		Usage: "write a profile of saltclusterd on this node to FILE: where it spends its time or memory",
		Description: "Read it with go tool pprof, or attach it to a report. It names functions of the program and contains no data\n" +
			"that the program processes. While a CPU profile is taken, saltclusterd uses about 1% more CPU.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: adminapi.ProfileCPU,
				Usage: "`KIND`: " + strings.Join(adminapi.ProfileKinds(), ", ")},
			&cli.DurationFlag{Name: "for", Value: 10 * time.Second, Usage: "profile the CPU for `TIME`, in whole seconds"},
		},
		Action: console.WithOneArg(e, "saltclusterctl profile /root/cpu.pprof",
			"profile takes the name of the file to write", func(c *cli.Context, e *console.Env) error {
				return runProfile(c, e, c.Args().First())
			}),
	})
}

// profiled is what the verb shows.
type profiled struct {
	File    string `json:"file"`
	Kind    string `json:"kind"`
	Seconds int    `json:"seconds,omitempty"`
	Bytes   int    `json:"bytes"`
}

func runProfile(c *cli.Context, e *console.Env, path string) error {
	q := adminapi.ProfileQuery{Kind: c.String("kind")}
	if q.Kind == adminapi.ProfileCPU || c.IsSet("for") {
		q.For = c.Duration("for")
	}
	if err := q.Validate(); err != nil {
		return console.Usagef("saltclusterctl profile --kind cpu --for 10s /root/cpu.pprof", "%v", err)
	}
	if q.For > 0 {
		fmt.Fprintf(e.Stderr, "sampling for %s\n", q.For)
	}
	ctx, cancel := context.WithTimeout(c.Context, q.For+c.Duration("timeout"))
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	var file bytes.Buffer
	if err := client.Profile(ctx, q, &file); err != nil {
		return err
	}
	out := profiled{File: path, Kind: q.Kind, Seconds: int(q.For / time.Second), Bytes: file.Len()}
	if err := console.WriteNew(path, file.Bytes()); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return e.PrintValue(c, out, func(s *console.Screen) {
		s.Line("%s: %s, %d KiB; to read it: go tool pprof -top %s", console.Clean(path), out.Kind, (out.Bytes+1023)/1024, console.Clean(path))
	})
}
