package lab

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// Result of a command that has ended.
type Result struct {
	Argv           []string
	Stdout, Stderr string
	Code           int // 128+n after signal n
	Took           time.Duration
}

// Err is nil when the command exited with 0.
func (r Result) Err() error {
	if r.Code == 0 {
		return nil
	}
	return fmt.Errorf("%s: exit code %d\n%s", strings.Join(r.Argv, " "), r.Code, r.Output())
}

// Output is what it printed, standard output first.
func (r Result) Output() string { return strings.TrimSpace(r.Stdout + "\n" + r.Stderr) }

// Exec runs a command on the host and waits for it. The error tells that it could not be run, or that ctx ended first,
// and then it has been killed with everything it had started; its exit code is in the Result.
func (h *Host) Exec(ctx context.Context, env []string, argv ...string) (Result, error) {
	res := Result{Argv: argv}
	var stdout, stderr bytes.Buffer
	start := time.Now()
	run, err := h.launch(order{Argv: argv, Env: env}, nil, &stdout, &stderr)
	if err != nil {
		return res, fmt.Errorf("run %s on %s: %w", argv[0], h.Name, err)
	}
	select {
	case <-run.done:
	case <-ctx.Done():
		_ = killTree(run.cmd.Process.Pid, 10*time.Second)
		<-run.done
		err = fmt.Errorf("run %s on %s: %w", strings.Join(argv, " "), h.Name, context.Cause(ctx))
	}
	res.Stdout, res.Stderr, res.Code, res.Took = stdout.String(), stderr.String(), run.code, time.Since(start)
	return res, err
}
