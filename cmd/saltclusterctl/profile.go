package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newProfileCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "profile", ArgsUsage: "FILE",
		Usage: "write into FILE where this node's saltclusterd spends its time or memory",
		Description: "For go tool pprof, and for those who help: it tells places in the program, and nothing of what passes through it. While the\n" +
			"processor's time is sampled saltclusterd needs about one hundredth more of it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: adminapi.ProfileCPU,
				Usage: "`KIND`: " + strings.Join(adminapi.ProfileKinds(), ", ")},
			&cli.DurationFlag{Name: "for", Value: 10 * time.Second, Usage: "sample the processor for `TIME`, in whole seconds"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl profile /root/cpu.pprof", "profile takes the name of the file to write")
			}
			return runProfile(c, e, c.Args().First())
		},
	})
}

// profiled is what the verb shows.
type profiled struct {
	File    string `json:"file"`
	Kind    string `json:"kind"`
	Seconds int    `json:"seconds,omitempty"`
	Bytes   int    `json:"bytes"`
}

func runProfile(c *cli.Context, e *env, path string) error {
	q := adminapi.ProfileQuery{Kind: c.String("kind")}
	if q.Kind == adminapi.ProfileCPU || c.IsSet("for") {
		q.For = c.Duration("for")
	}
	if err := q.Validate(); err != nil {
		return usagef("saltclusterctl profile --kind cpu --for 10s /root/cpu.pprof", "%v", err)
	}
	if q.For > 0 {
		fmt.Fprintf(e.stderr, "sampling for %s\n", q.For)
	}
	ctx, cancel := context.WithTimeout(c.Context, q.For+c.Duration("timeout"))
	defer cancel()
	client := e.openClient(c)
	defer client.Close()
	var file bytes.Buffer
	if err := client.Profile(ctx, q, &file); err != nil {
		return err
	}
	out := profiled{File: path, Kind: q.Kind, Seconds: int(q.For / time.Second), Bytes: file.Len()}
	if err := writeNew(path, file.Bytes()); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return e.printValue(c, out, func(s *screen) {
		s.line("%s: %s, %d KiB; to read it: go tool pprof -top %s", clean(path), out.Kind, (out.Bytes+1023)/1024, clean(path))
	})
}
