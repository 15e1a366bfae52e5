package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// Commands of Salt print the same and end with the same code, whether they are programs of their own or forks.
func TestSalt_ForksAreAsPrograms(t *testing.T) {
	for _, v := range []string{lab.Versions[0], lab.Versions[2]} {
		t.Run(v, func(t *testing.T) {
			m, err := host(t, labtest.New(t, lab.Options{Loopback: true}), "m1").NewMinion(v, "min", "127.0.0.1")
			labtest.Must(t, err)
			call := func(args ...string) lab.Result {
				t.Helper()
				res, err := m.Run(t.Context(), "salt-call", append([]string{"--local", "--out=json"}, args...)...)
				labtest.Must(t, err)
				return res
			}
			calls := [][]string{{"test.echo", "ü"}, {"test.exception", "so it goes"}, {"--nonsense"}}
			var programs []lab.Result
			t.Setenv("SALTCLUSTER_LONG", "1")
			for _, c := range calls {
				programs = append(programs, call(c...))
			}
			t.Setenv("SALTCLUSTER_LONG", "")
			parent := []string{"cmd.run", "tr '\\0' ' ' </proc/$PPID/cmdline", "python_shell=True"}
			labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "a fork", func(context.Context) error {
				if res := call(parent...); !strings.Contains(res.Stdout, "commands.py") {
					return errors.New(res.Output())
				}
				return nil
			}))
			for i, c := range calls {
				if res, want := call(c...), programs[i]; res.Stdout != want.Stdout || res.Code != want.Code {
					t.Errorf("%q: code %d\n%s\nas a program: %d\n%s", c, res.Code, res.Output(), want.Code, want.Output())
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := m.Run(ctx, "salt-call", "--local", "test.sleep", "600"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a command that takes longer than its context: %v", err)
			}
		})
	}
}
